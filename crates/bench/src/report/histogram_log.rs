//! Latencies as an HDR histogram log (version 1.2 of its format), which other tools read: an interval
//! of ten seconds a line, tagged with its phase.

use std::error::Error;
use std::io::Write;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::measure::sample::Sample;
use crate::measure::summary::{histogram, record};

const INTERVAL: Duration = Duration::from_secs(10);
/// Shows maxima in milliseconds.
const NANOS_PER_MS: f64 = 1e6;

/// Writes the samples of phases, each with its name.
pub(super) fn write<'a>(
    out: &mut impl Write,
    phases: impl Iterator<Item = (&'a str, &'a [Sample])>,
) -> Result<(), Box<dyn Error>> {
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("latencies in nanoseconds, from the moment each call was due")
        .with_base_time(SystemTime::UNIX_EPOCH)
        .with_max_value_divisor(NANOS_PER_MS);
    let mut log = builder.begin_log_with(out, &mut serializer)?;
    for (name, samples) in phases {
        let tag = name.replace([' ', ','], "-");
        let mut samples: Vec<&Sample> = samples.iter().collect();
        samples.sort_by_key(|sample| sample.due);
        let interval = |sample: &Sample| sample.due.as_secs() / INTERVAL.as_secs();
        for part in samples.chunk_by(|a, b| interval(a) == interval(b)) {
            let mut latencies = histogram();
            for sample in part {
                record(&mut latencies, sample.latency());
            }
            let start = INTERVAL * interval(part[0]) as u32;
            log.write_histogram(&latencies, start, INTERVAL, Tag::new(&tag))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::measure::sample::Outcome;

    #[test]
    fn a_log_reads_back_as_the_latencies_of_each_interval() {
        let sample = |due: u64, ms: u64| Sample {
            due: Duration::from_secs(due),
            begun: Duration::from_secs(due),
            ended: Duration::from_secs(due) + Duration::from_millis(ms),
            outcome: Outcome::Answered,
            server: None,
            own: Duration::ZERO,
            query: 0,
        };
        let draining = [sample(12, 30), sample(13, 50), sample(25, 7)];
        let steady = [sample(30, 1)];
        let mut bytes = Vec::new();
        let phases = [
            ("draining", &draining[..]),
            ("steady after it", &steady[..]),
        ];
        write(&mut bytes, phases.into_iter()).unwrap();
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(&bytes) {
            if let LogEntry::Interval(interval) = entry.unwrap() {
                let text = interval.encoded_histogram();
                let compressed = base64_decoded(text);
                let histogram: Histogram<u64> = Deserializer::new()
                    .deserialize(&mut compressed.as_slice())
                    .unwrap();
                let tag = interval.tag().map(|tag| tag.as_str().to_owned());
                found.push((
                    tag.unwrap(),
                    interval.start_timestamp().as_secs(),
                    histogram.len(),
                    interval.max().round(),
                ));
            }
        }
        let tag = String::from;
        assert_eq!(
            found,
            [
                (tag("draining"), 10, 2, 50.0),
                (tag("draining"), 20, 1, 7.0),
                (tag("steady-after-it"), 30, 1, 1.0),
            ]
        );
    }

    /// The alphabet of RFC 4648, by hand: the crate has no decoder of its own for whole lines.
    fn base64_decoded(text: &str) -> Vec<u8> {
        let value = |c: u8| match c {
            b'A'..=b'Z' => u32::from(c - b'A'),
            b'a'..=b'z' => u32::from(c - b'a') + 26,
            b'0'..=b'9' => u32::from(c - b'0') + 52,
            b'+' => 62,
            _ => 63,
        };
        let digits: Vec<u8> = text.bytes().filter(|c| *c != b'=').collect();
        let bytes = digits.chunks(4).flat_map(|four| {
            let bits =
                four.iter().fold(0, |bits, c| bits << 6 | value(*c)) << (6 * (4 - four.len()));
            bits.to_be_bytes()[1..four.len()].to_vec()
        });
        bytes.collect()
    }
}
