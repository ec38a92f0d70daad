//! Travel times over the number of messages as SVG, the four cases of a place in one picture.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::sample::Sample;
use super::{Case, PLACES};
use crate::Result;

const SIZE: (u32, u32) = (1200, 900);

/// Of the systems, in the order in which they come; they can be told apart without their hue.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 90, 181),
    RGBColor(0, 158, 115),
    RGBColor(220, 50, 32),
    RGBColor(230, 159, 0),
    RGBColor(86, 60, 120),
    RGBColor(90, 90, 90),
];

/// Both axes are logarithmic: what grows with the number of messages rises, what does not is level.
pub(super) fn render(place: &str, samples: &[Sample]) -> Result<String> {
    assert!(PLACES.contains(&place), "a place of this document");
    let mut svg = String::new();
    {
        let sheet = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        sheet.fill(&WHITE)?;
        let cases = Case::all().into_iter().filter(|case| case.place == place);
        for (panel, case) in sheet.split_evenly((2, 2)).iter().zip(cases) {
            draw(panel, &case, &lines(&case, samples))?;
        }
        sheet.present()?;
    }
    Ok(svg)
}

type Line<'a> = (&'a str, Vec<(f64, f64)>);

/// A line a system: the round whose consumer was neither the fastest nor the slowest.
fn lines<'a>(case: &Case, samples: &'a [Sample]) -> Vec<Line<'a>> {
    let name = case.name();
    let own: Vec<&Sample> = samples.iter().filter(|sample| sample.text("case") == name).collect();
    let mut systems: Vec<&str> = own.iter().map(|sample| sample.text("system")).collect();
    systems.dedup();
    let mut lines: Vec<Line> = Vec::new();
    for system in systems {
        if lines.iter().any(|(drawn, _)| *drawn == system) {
            continue;
        }
        let mut rounds: Vec<&Sample> =
            own.iter().copied().filter(|sample| sample.text("system") == system).collect();
        rounds.sort_by(|one, other| {
            one.received().partial_cmp(&other.received()).unwrap_or(std::cmp::Ordering::Equal)
        });
        if let Some(middle) = rounds.get(rounds.len() / 2) {
            lines.push((system, middle.points()));
        }
    }
    lines
}

fn draw(panel: &DrawingArea<SVGBackend<'_>, Shift>, case: &Case, lines: &[Line]) -> Result<()> {
    let points = || lines.iter().flat_map(|(_, points)| points.iter().copied());
    let count_max = points().map(|(count, _)| count).fold(100.0, f64::max);
    let millis_max = points().map(|(_, ms)| ms).fold(10.0, f64::max);
    let caption = format!("producer {}, consumer {}", case.producer, case.consumer);
    let mut chart = ChartBuilder::on(panel)
        .caption(caption, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((10.0..count_max).log_scale(), (0.1..millis_max).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("messages received")
        .y_desc("mean travel time, ms")
        .x_label_formatter(&|count| format!("{count:.0}"))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for ((name, points), colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
        chart
            .draw_series(line)?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::joram::sample::tests::sample;

    #[test]
    fn a_picture_has_four_cases_and_a_line_a_system() {
        let other = sample().named("joram", "queue-plain-plain", 1, "a");
        let svg = render("queue", &[sample(), sample(), other]).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg.matches("producer transacted").count(), 2);
        for name in ["dunlin", "joram"] {
            assert_eq!(svg.lines().filter(|line| line.trim() == name).count(), 1, "{svg}");
        }
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        assert!(render("topic", &[Sample::of_failure("closed")]).is_ok());
    }
}
