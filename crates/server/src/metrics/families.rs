//! Series under a name, with what the name means.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, NoLabelSet,
};
use prometheus_client::metrics::MetricType;

/// One label and its value.
pub(super) type Label = (&'static str, String);

/// Labels of a series that needs none.
pub(super) const NO_LABELS: [Label; 0] = [];

/// A label.
pub(super) fn label(name: &'static str, value: impl Into<String>) -> Label {
    (name, value.into())
}

/// A histogram as it stands.
#[derive(Debug)]
pub(super) struct Histogram {
    /// Sum of all observations.
    pub(super) sum: f64,
    /// Upper bound of each bucket and the observations in it; the last bound is infinite.
    pub(super) buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Observations.
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

/// Writes families of series; a family without series is left out.
pub(super) struct Families<'a> {
    encoder: DescriptorEncoder<'a>,
    prefix: String,
}

impl<'a> Families<'a> {
    /// Every name begins with `prefix`, as it is.
    pub(super) fn new(encoder: DescriptorEncoder<'a>, prefix: &str) -> Self {
        Self {
            encoder,
            prefix: prefix.to_owned(),
        }
    }

    /// A number that stands alone.
    pub(super) fn gauge(
        &mut self,
        name: &str,
        help: &str,
        value: impl EncodeGaugeValue,
    ) -> fmt::Result {
        self.gauges(name, help, [(NO_LABELS, value)])
    }

    /// Numbers that may rise and fall.
    pub(super) fn gauges<L: AsRef<[Label]>, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, series, |encoder, value| {
            encoder.encode_gauge(&value)
        })
    }

    /// Numbers that only rise; `_total` is added to the name.
    pub(super) fn counters<L: AsRef<[Label]>, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Counter, series, |encoder, value| {
            encoder.encode_counter::<NoLabelSet, V, u64>(&value, None)
        })
    }

    /// Distributions.
    pub(super) fn histograms<L: AsRef<[Label]>>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (L, Histogram)>,
    ) -> fmt::Result {
        self.family(
            name,
            help,
            MetricType::Histogram,
            series,
            |encoder, value| {
                encoder.encode_histogram::<NoLabelSet>(
                    value.sum,
                    value.count(),
                    &value.buckets,
                    None,
                )
            },
        )
    }

    fn family<L: AsRef<[Label]>, V>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        series: impl IntoIterator<Item = (L, V)>,
        write: impl Fn(&mut prometheus_client::encoding::MetricEncoder<'_>, V) -> fmt::Result,
    ) -> fmt::Result {
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return Ok(());
        }
        let name = format!("{}{name}", self.prefix);
        let mut encoder = self.encoder.encode_descriptor(&name, help, None, kind)?;
        for (labels, value) in series {
            let labels = labels.as_ref();
            if labels.is_empty() {
                write(&mut encoder, value)?;
            } else {
                write(&mut encoder.encode_family(&labels)?, value)?;
            }
        }
        Ok(())
    }
}
