//! Figures computed from the answers to `fill`, `drain` and `saturate`.

use crate::bench::sample::Sample;
use crate::median::median;

/// Messages sent a second.
pub(super) fn sent(sample: &Sample) -> Option<f64> {
    sample.rate("saturate", "sent")
}

/// Messages received a second while the producer sends.
pub(super) fn received(sample: &Sample) -> Option<f64> {
    sample.rate("saturate", "received")
}

/// Messages received a second where no producer runs.
pub(super) fn alone(sample: &Sample) -> Option<f64> {
    sample.rate("drain", "received")
}

/// The consumer took all that was there for it alone, in time.
pub(super) fn drained(sample: &Sample) -> bool {
    sample.number("drain", "received") == sample.number("fill", "sent")
}

/// The rate received under saturation, relative to the rate of the consumer alone.
pub(super) fn ratio(sample: &Sample) -> Option<f64> {
    Some(received(sample)? / alone(sample)?)
}

/// The same for a second of processor time spent on receiving, in broker and client. Under
/// saturation that is the total time less the sends, each at its cost in `fill`.
pub(super) fn ratio_by_core(sample: &Sample) -> Option<f64> {
    let each_sent = cpu(sample, "fill")? / sample.number("fill", "sent")?;
    let receiving = cpu(sample, "saturate")? - each_sent * sample.number("saturate", "sent")?;
    let saturated = sample.number("saturate", "received")? / receiving;
    let alone = sample.number("drain", "received")? / cpu(sample, "drain")?;
    (receiving > 0.0 && alone.is_finite()).then_some(saturated / alone)
}

/// Numbers of messages, and mean travel times in ms up to there.
pub(super) fn points(sample: &Sample) -> Vec<(f64, f64)> {
    let each = sample.number("saturate", "point_messages").unwrap_or(1.0);
    let number = |index: usize| each * (index + 1) as f64;
    travels(sample).into_iter().enumerate().map(|(at, ms)| (number(at), ms)).collect()
}

/// Medians of the travel times by fifths of the run, in ms.
pub(super) fn fifths(sample: &Sample) -> Option<[f64; 5]> {
    let travels = travels(sample);
    let mut fifths = [0.0; 5];
    for (fifth, slot) in fifths.iter_mut().enumerate() {
        let ends = [fifth, fifth + 1].map(|end| end * travels.len() / 5);
        *slot = median(travels.get(ends[0]..ends[1])?.to_vec())?;
    }
    Some(fifths)
}

/// Travel time of the last fifth over that of the second, when the start-up is over.
pub(super) fn growth(sample: &Sample) -> Option<f64> {
    let [_, second, _, _, last] = fifths(sample)?;
    Some(last / second)
}

fn travels(sample: &Sample) -> Vec<f64> {
    sample.list("saturate", "travel_ms")
}

fn cpu(sample: &Sample, phase: &str) -> Option<f64> {
    Some(sample.number(phase, "broker_cpu_nanos")? + sample.number(phase, "client_cpu_nanos")?)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// 1000 sent and 500 received in a second, 2000 a second alone.
    pub(crate) fn sample() -> Sample {
        Sample::from(json!({
            "system": "dunlin", "case": "queue-plain-plain", "round": 1, "run": "a",
            "fill": {"sent": 100, "nanos": 5e7,
                "broker_cpu_nanos": 4e7, "client_cpu_nanos": 6e7},
            "drain": {"received": 100, "nanos": 5e7,
                "broker_cpu_nanos": 5e7, "client_cpu_nanos": 5e7},
            "saturate": {"sent": 1000, "received": 500, "nanos": 1e9,
                "broker_cpu_nanos": 1e9, "client_cpu_nanos": 7.5e8, "flushes": 250,
                "written_bytes": 2e6, "point_messages": 100, "travel_ms": [1, 2, 3, 4, 8]},
        }))
    }

    #[test]
    fn rates_and_ratios() {
        let sample = sample();
        assert_eq!(sent(&sample), Some(1000.0));
        assert_eq!(received(&sample), Some(500.0));
        assert_eq!(alone(&sample), Some(2000.0));
        assert_eq!(ratio(&sample), Some(0.25));
        // 1.75 s in all, 1 ms for each sent: 0.75 s for 500, and alone 1 ms each.
        let by_core = ratio_by_core(&sample).unwrap();
        assert!((by_core - 500.0 / 0.75 / 1000.0).abs() < 1e-9, "{by_core}");
        assert!(drained(&sample));
    }

    #[test]
    fn growth_compares_last_and_second_fifth() {
        assert_eq!(fifths(&sample()), Some([1.0, 2.0, 3.0, 4.0, 8.0]));
        assert_eq!(growth(&sample()), Some(4.0));
        assert_eq!(points(&sample())[1], (200.0, 2.0));
        assert_eq!(growth(&Sample::of_failure("closed")), None);
    }
}
