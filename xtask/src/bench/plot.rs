//! Pictures as SVG: lines over a number, and bars by case.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::page::Group;
use crate::Result;

/// Of the systems, in the order in which they come; they can be told apart without their hue.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0, 90, 181),
    RGBColor(0, 158, 115),
    RGBColor(220, 50, 32),
    RGBColor(230, 159, 0),
    RGBColor(86, 60, 120),
    RGBColor(90, 90, 90),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(150, 100, 50),
    RGBColor(0, 0, 0),
];

const PANEL: (u32, u32) = (600, 450);
/// Of an axis: more would lie over each other.
const LABELS: usize = 6;
const BAR_HEIGHT: u32 = 16;
const BARS_WIDTH: u32 = 1100;
/// For the labels of the cases and the names of the systems, which end where the bars begin.
const LABEL_WIDTH: i32 = 420;
/// For the numbers behind the bars.
const NUMBER_WIDTH: i32 = 120;

/// Dunlin's bars, and those of all other systems: with more systems than colours, names tell them
/// apart.
const OWN: RGBColor = RGBColor(0, 90, 181);
const OTHER: RGBColor = RGBColor(160, 160, 160);

/// A line's name and points.
pub(super) type Line<'a> = (&'a str, Vec<(f64, f64)>);

/// Lines over a number, both axes logarithmic: a figure that grows with the number rises, any other
/// is level.
pub(super) struct Panel<'a> {
    pub(super) caption: String,
    pub(super) axes: [&'a str; 2],
    pub(super) lines: Vec<Line<'a>>,
}

/// Panels beside and below each other.
pub(super) fn panels(panels: &[Panel<'_>]) -> Result<String> {
    let columns = panels.len().clamp(1, 2);
    let rows = panels.len().div_ceil(columns).max(1);
    let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32);
    let mut svg = String::new();
    {
        let sheet = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        sheet.fill(&WHITE)?;
        for (area, panel) in sheet.split_evenly((rows, columns)).iter().zip(panels) {
            draw(area, panel)?;
        }
        sheet.present()?;
    }
    Ok(svg)
}

fn draw(area: &DrawingArea<SVGBackend<'_>, Shift>, panel: &Panel<'_>) -> Result<()> {
    let points = || panel.lines.iter().flat_map(|(_, points)| points.iter().copied());
    let (xs, ys) = (ends(points().map(|(x, _)| x)), ends(points().map(|(_, y)| y)));
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.caption, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((xs.0..xs.1).log_scale(), (ys.0..ys.1).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(panel.axes[0])
        .y_desc(panel.axes[1])
        .x_labels(LABELS)
        .x_label_formatter(&|count| format!("{count:.0}"))
        .y_label_formatter(&|value| number(*value))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for ((name, points), colour) in panel.lines.iter().zip(COLOURS.iter().cycle()) {
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

/// The least and the greatest that can be shown; a logarithm wants more than nothing.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut least, mut greatest) = (f64::MAX, f64::MIN);
    for value in values.filter(|value| *value > 0.0) {
        least = least.min(value);
        greatest = greatest.max(value);
    }
    if least > greatest {
        return (0.1, 10.0);
    }
    (least, greatest.max(least * 10.0))
}

/// A bar for each case and system, on a logarithmic scale: a factor of ten has the same length
/// everywhere.
pub(super) fn bars(title: &str, unit: &str, groups: &[Group]) -> Result<String> {
    let count: usize = groups.iter().map(|(_, values)| values.len() + 1).sum();
    let height = BAR_HEIGHT * (count + 4) as u32;
    let mut svg = String::new();
    {
        let sheet = SVGBackend::with_string(&mut svg, (BARS_WIDTH, height)).into_drawing_area();
        sheet.fill(&WHITE)?;
        let heading = format!("{title}: {unit}, logarithmic");
        sheet.draw(&Text::new(heading, (10, 10), ("sans-serif", 18).into_font()))?;
        let (least, greatest) = ends(groups.iter().flat_map(|(_, all)| all).map(|(_, v)| *v));
        let room = f64::from(BARS_WIDTH as i32 - LABEL_WIDTH - NUMBER_WIDTH);
        // The least has a bar too.
        let scale = (greatest / (least / 2.0)).ln();
        let length = |value: f64| (room * (value * 2.0 / least).ln() / scale) as i32;
        let mut top = 3 * BAR_HEIGHT as i32;
        for (label, values) in groups {
            sheet.draw(&Text::new(label.clone(), (10, top), ("sans-serif", 13).into_font()))?;
            for (system, value) in values.iter().filter(|(_, value)| *value > 0.0) {
                bar(&sheet, top, system, *value, length(*value).max(1))?;
                top += BAR_HEIGHT as i32;
            }
            top += BAR_HEIGHT as i32;
        }
        sheet.present()?;
    }
    Ok(svg)
}

/// The system's name, its bar, and the number.
fn bar(
    sheet: &DrawingArea<SVGBackend<'_>, Shift>,
    top: i32,
    system: &str,
    value: f64,
    length: i32,
) -> Result<()> {
    let text = ("sans-serif", 13).into_font();
    let name = TextStyle::from(text.clone()).pos(Pos::new(HPos::Right, VPos::Top));
    sheet.draw(&Text::new(system.to_owned(), (LABEL_WIDTH - 8, top), name))?;
    let end = LABEL_WIDTH + length;
    let corners = [(LABEL_WIDTH, top), (end, top + BAR_HEIGHT as i32 - 3)];
    let colour = if system.starts_with("dunlin") { OWN } else { OTHER };
    sheet.draw(&Rectangle::new(corners, colour.filled()))?;
    sheet.draw(&Text::new(number(value), (end + 5, top), text))?;
    Ok(())
}

/// As many places as one can read.
fn number(value: f64) -> String {
    let places = if value < 1.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_has_panels_and_system_lines() {
        let panel = |caption: &str| Panel {
            caption: caption.to_owned(),
            axes: ["messages", "ms"],
            lines: vec![("dunlin", vec![(1.0, 2.0), (10.0, 3.0)]), ("joram", vec![(1.0, 5.0)])],
        };
        let svg = panels(&[panel("one"), panel("two"), panel("three")]).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for (word, times) in [("two", 1), ("dunlin", 3), ("joram", 3)] {
            assert_eq!(svg.lines().filter(|line| line.trim() == word).count(), times, "{svg}");
        }
    }

    #[test]
    fn bars_show_values_and_system_names() {
        let of = |value| vec![("dunlin".to_owned(), value), ("joram".to_owned(), 10.0 * value)];
        let svg = bars("T", "ms", &[("a".to_owned(), of(1.0)), ("b".to_owned(), of(2.0))]).unwrap();
        assert_eq!(svg.matches("<rect").count(), 1 + 4, "{svg}");
        for (name, times) in [("dunlin", 2), ("joram", 2), ("20.0", 1)] {
            assert_eq!(svg.lines().filter(|line| line.trim() == name).count(), times, "{svg}");
        }
    }

    #[test]
    fn picture_without_samples_is_empty() {
        assert!(bars("T", "ms", &[]).is_ok());
        let empty = Panel { caption: String::new(), axes: ["", ""], lines: Vec::new() };
        assert!(panels(&[empty]).is_ok());
        assert_eq!(ends([0.0].into_iter()), (0.1, 10.0));
    }
}
