//! Charts as SVG, drawn by hand: no script, no font, no network. 420 units wide, so that on a phone
//! a unit is about a point and the text can be read.

use std::fmt::Write as _;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 240.0;
/// Room for labels: left, right, above, below.
const LEFT: f64 = 44.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;
/// Height of a row of bars or dots.
const ROW: f64 = 30.0;
/// Least value on a logarithmic axis.
const LOG_MIN: f64 = 1e-3;

/// A line of points.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// A part of the x axis with a name: a phase.
#[derive(Clone, Debug)]
pub(super) struct Band {
    pub(super) name: String,
    pub(super) from: f64,
    pub(super) to: f64,
}

/// How values go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// From 0.
    Linear,
    /// From the least value; zeros stand at the bottom.
    Log,
    /// From 0 to 1.
    Share,
}

/// Lines over x, with phases behind them and jobs as bars at the bottom.
#[derive(Clone, Debug)]
pub(super) struct LineChart<'a> {
    pub(super) x: &'a str,
    pub(super) y: &'a str,
    pub(super) scale: Scale,
    pub(super) lines: Vec<Line>,
    pub(super) bands: Vec<Band>,
    pub(super) jobs: Vec<Band>,
}

/// A row: its name, and values that stand on one axis.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) values: Vec<f64>,
    /// Shown behind the last value.
    pub(super) note: String,
}

/// Numbers to places on an axis.
struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64> + Clone, scale: Scale, from: f64, to: f64) -> Self {
        let finite = values.filter(|x| x.is_finite());
        let max = finite.clone().fold(0.0, f64::max);
        let (low, high) = match scale {
            Scale::Linear => (0.0, if max > 0.0 { max * 1.05 } else { 1.0 }),
            Scale::Share => (0.0, 1.0),
            Scale::Log => {
                let positive = finite.filter(|x| *x > 0.0);
                let min = positive.fold(f64::INFINITY, f64::min);
                let min = if min.is_finite() {
                    min.max(LOG_MIN)
                } else {
                    1.0
                };
                let floor = 10f64.powf(min.log10().floor());
                (floor, 10f64.powf(max.max(floor * 1.01).log10().ceil()))
            }
        };
        let is_log = scale == Scale::Log;
        Self {
            low,
            high,
            is_log,
            from,
            to,
        }
    }

    /// From the least to the greatest of the values, whatever they are.
    fn spanning(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low < high {
            (low, high)
        } else {
            (low.min(0.0), low.max(0.0) + 1.0)
        };
        let (low, high) = if low.is_finite() {
            (low, high)
        } else {
            (0.0, 1.0)
        };
        Self {
            low,
            high,
            is_log: false,
            from,
            to,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let share = if self.is_log {
            let value = value.max(self.low);
            (value / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_log {
            let decades = (self.low.log10().round() as i32)..=(self.high.log10().round() as i32);
            return decades.map(|d| 10f64.powi(d)).collect();
        }
        let span = self.high - self.low;
        let rough = span / 4.0;
        let power = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
        let step = steps.iter().map(|s| s * power).find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }
}

/// Draws lines.
pub(super) fn lines(chart: &LineChart<'_>) -> String {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let ends = chart.bands.iter().flat_map(|band| [band.from, band.to]);
    let xs = points().map(|point| point.0).chain(ends);
    let x = Axis::spanning(xs, LEFT, WIDTH - RIGHT);
    let y = Axis::new(
        points().map(|point| point.1),
        chart.scale,
        HEIGHT - BOTTOM,
        TOP,
    );
    let mut svg = open(HEIGHT, chart.y);
    for (index, band) in chart.bands.iter().enumerate() {
        let (from, to) = (x.place(band.from), x.place(band.to));
        let (height, class) = (HEIGHT - BOTTOM - TOP, index % 2);
        put(
            &mut svg,
            format_args!(
                "<rect class='band{class}' x='{from:.1}' y='{TOP}' width='{:.1}' height='{height}'/>",
                to - from
            ),
        );
        // A name that is wider than its band would lie over the next one.
        if to - from > 6.0 * band.name.len() as f64 {
            put(
                &mut svg,
                format_args!(
                    "<text class='faint' x='{:.1}' y='{:.1}'>{}</text>",
                    from + 3.0,
                    TOP + 10.0,
                    escaped(&band.name)
                ),
            );
        }
    }
    for job in &chart.jobs {
        let (from, to) = (x.place(job.from), x.place(job.to));
        let (top, width) = (HEIGHT - BOTTOM - 5.0, (to - from).max(1.5));
        put(
            &mut svg,
            format_args!(
                "<rect class='job' x='{from:.1}' y='{top:.1}' width='{width:.1}' height='5'><title>{}</title></rect>",
                escaped(&job.name)
            ),
        );
    }
    for tick in y.ticks() {
        let at = y.place(tick);
        put(
            &mut svg,
            format_args!(
                "<line class='grid' x1='{LEFT}' x2='{:.1}' y1='{at:.1}' y2='{at:.1}'/>",
                WIDTH - RIGHT
            ),
        );
        put(
            &mut svg,
            format_args!(
                "<text class='end' x='{:.1}' y='{:.1}'>{}</text>",
                LEFT - 4.0,
                at + 3.5,
                number(tick)
            ),
        );
    }
    for tick in x.ticks() {
        let at = x.place(tick);
        put(
            &mut svg,
            format_args!(
                "<text class='mid' x='{at:.1}' y='{:.1}'>{}</text>",
                HEIGHT - BOTTOM + 13.0,
                number(tick)
            ),
        );
    }
    put(
        &mut svg,
        format_args!(
            "<text class='end' x='{:.1}' y='{:.1}'>{}</text>",
            WIDTH - RIGHT,
            HEIGHT - 6.0,
            escaped(chart.x)
        ),
    );
    for (index, line) in chart.lines.iter().enumerate() {
        let at = |(a, b): &(f64, f64)| format!("{:.1},{:.1}", x.place(*a), y.place(*b));
        let path: Vec<String> = line.points.iter().map(at).collect();
        put(
            &mut svg,
            format_args!(
                "<polyline class='line{}' points='{}'/>",
                index % 6,
                path.join(" ")
            ),
        );
        if let [only] = &line.points[..] {
            put(
                &mut svg,
                format_args!(
                    "<circle class='dot{}' cx='{:.1}' cy='{:.1}' r='2.5'/>",
                    index % 6,
                    x.place(only.0),
                    y.place(only.1)
                ),
            );
        }
    }
    svg.push_str("</svg>");
    svg + &legend(chart.lines.iter().map(|line| line.name.as_str()))
}

/// Draws a bar for each row, of its first value.
pub(super) fn bars(rows: &[Row], unit: &str) -> String {
    let height = TOP + ROW * rows.len() as f64 + 4.0;
    let first = |row: &Row| row.values.first().copied().unwrap_or(0.0);
    let x = Axis::new(rows.iter().map(first), Scale::Linear, LEFT, WIDTH - 90.0);
    let mut svg = open(height, unit);
    for (index, row) in rows.iter().enumerate() {
        let top = TOP + ROW * index as f64;
        let to = x.place(first(row));
        put(
            &mut svg,
            format_args!(
                "<text class='faint' x='4' y='{:.1}'>{}</text>",
                top + 7.0,
                escaped(&row.name)
            ),
        );
        put(
            &mut svg,
            format_args!(
                "<rect class='bar' x='{LEFT}' y='{:.1}' width='{:.1}' height='10'/>",
                top + 11.0,
                (to - LEFT).max(0.5)
            ),
        );
        put(
            &mut svg,
            format_args!(
                "<text x='{:.1}' y='{:.1}'>{} {}</text>",
                to + 4.0,
                top + 20.0,
                number(first(row)),
                escaped(&row.note)
            ),
        );
    }
    svg + "</svg>"
}

/// Draws the values of each row as dots on one logarithmic axis: percentiles.
pub(super) fn dots(rows: &[Row], names: &[&str], unit: &str) -> String {
    let height = TOP + ROW * rows.len() as f64 + BOTTOM;
    let values = rows.iter().flat_map(|row| row.values.iter().copied());
    let x = Axis::new(values, Scale::Log, LEFT, WIDTH - 20.0);
    let mut svg = open(height, unit);
    for tick in x.ticks() {
        let at = x.place(tick);
        put(
            &mut svg,
            format_args!(
                "<line class='grid' x1='{at:.1}' x2='{at:.1}' y1='{TOP}' y2='{:.1}'/>",
                height - BOTTOM
            ),
        );
        put(
            &mut svg,
            format_args!(
                "<text class='mid' x='{at:.1}' y='{:.1}'>{}</text>",
                height - BOTTOM + 13.0,
                number(tick)
            ),
        );
    }
    put(
        &mut svg,
        format_args!(
            "<text class='end' x='{:.1}' y='{:.1}'>{}</text>",
            WIDTH - RIGHT,
            height - 6.0,
            escaped(unit)
        ),
    );
    for (index, row) in rows.iter().enumerate() {
        let middle = TOP + ROW * index as f64 + 17.0;
        put(
            &mut svg,
            format_args!(
                "<text class='faint' x='4' y='{:.1}'>{} {}</text>",
                middle - 8.0,
                escaped(&row.name),
                escaped(&row.note)
            ),
        );
        let places: Vec<f64> = row.values.iter().map(|value| x.place(*value)).collect();
        if let (Some(from), Some(to)) = (places.first(), places.last()) {
            put(
                &mut svg,
                format_args!(
                    "<line class='range' x1='{from:.1}' x2='{to:.1}' y1='{middle:.1}' y2='{middle:.1}'/>"
                ),
            );
        }
        for (which, (place, value)) in places.iter().zip(&row.values).enumerate() {
            put(
                &mut svg,
                format_args!(
                    "<circle class='dot{}' cx='{place:.1}' cy='{middle:.1}' r='4'><title>{}</title></circle>",
                    which % 6,
                    number(*value)
                ),
            );
        }
    }
    svg + "</svg>" + &legend(names.iter().copied())
}

fn open(height: f64, label: &str) -> String {
    format!(
        "<svg viewBox='0 0 {WIDTH} {height:.0}' role='img' aria-label='{}'>",
        escaped(label)
    )
}

fn legend<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let entry = |(index, name): (usize, &str)| {
        format!(
            "<span><i class='key{}'></i>{}</span> ",
            index % 6,
            escaped(name)
        )
    };
    let entries: String = names.enumerate().map(entry).collect();
    format!("<p class='legend'>{entries}</p>")
}

fn put(svg: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = svg.write_fmt(text);
}

/// A number in few signs.
pub(super) fn number(x: f64) -> String {
    let size = x.abs();
    if size >= 1e6 {
        return format!("{}M", trimmed(x / 1e6));
    }
    if size >= 1e4 {
        return format!("{}k", trimmed(x / 1e3));
    }
    trimmed(x)
}

fn trimmed(x: f64) -> String {
    let digits = match x.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 4,
    };
    let text = format!("{x:.digits$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Text as it stands in HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_puts_its_ends_where_they_belong() {
        let linear = Axis::new([0.0, 100.0].into_iter(), Scale::Linear, 0.0, 105.0);
        assert!((linear.place(50.0) - 50.0).abs() < 1e-9);
        assert_eq!(linear.ticks(), [0.0, 50.0, 100.0]);
        let log = Axis::new([2.0, 900.0].into_iter(), Scale::Log, 0.0, 3.0);
        assert_eq!(log.ticks(), [1.0, 10.0, 100.0, 1000.0]);
        assert!((log.place(10.0) - 1.0).abs() < 1e-9 && log.place(0.0) == 0.0);
        let empty = Axis::new(std::iter::empty(), Scale::Log, 0.0, 1.0);
        assert!(empty.place(5.0).is_finite() && empty.ticks().len() < 5);
        let one = Axis::spanning([7.0].into_iter(), 0.0, 1.0);
        assert!(one.place(7.0).is_finite());
    }

    #[test]
    fn numbers_are_short() {
        for (x, text) in [
            (0.0, "0"),
            (0.001, "0.001"),
            (1.0, "1"),
            (2.5, "2.5"),
            (42.37, "42.4"),
            (150.0, "150"),
            (12_000.0, "12k"),
            (1.5e6, "1.5M"),
        ] {
            assert_eq!(number(x), text);
        }
    }

    #[test]
    fn names_cannot_break_the_page() {
        let rows = [Row {
            name: String::from("<script>'\""),
            values: vec![1.0, 2.0],
            note: String::from("&"),
        }];
        for svg in [bars(&rows, "s"), dots(&rows, &["p50"], "ms")] {
            assert!(!svg.contains("<script>") && svg.contains("&lt;script&gt;&#39;&quot;"));
        }
    }

    #[test]
    fn no_place_on_a_chart_is_not_a_number() {
        let chart = LineChart {
            x: "s",
            y: "ms",
            scale: Scale::Log,
            lines: vec![
                Line {
                    name: String::from("none"),
                    points: vec![],
                },
                Line {
                    name: String::from("one"),
                    points: vec![(3.0, 0.0)],
                },
            ],
            bands: vec![],
            jobs: vec![Band {
                name: String::new(),
                from: 1.0,
                to: 1.0,
            }],
        };
        let svg = lines(&chart);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
