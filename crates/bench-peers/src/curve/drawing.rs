//! The curves as one SVG: a panel for each line, a curve for each engine, entries on a logarithmic
//! axis.

use std::error::Error as StdError;

use drumlin_base::{Error, ErrorKind, Result};
use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement};
use plotters::prelude::{IntoLogRange, SVGBackend};
use plotters::series::LineSeries;
use plotters::style::{BLACK, Color, RGBColor, WHITE};

use super::contest::{Curves, Standing};
use super::report::short;

const PANEL_WIDTH: u32 = 420;
const PANEL_HEIGHT: u32 = 340;

/// Colours that stay apart for the colour-blind (after Okabe and Ito); the first engine gets the
/// first.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;
type Drawn = std::result::Result<(), Box<dyn StdError>>;

/// Draws `standing`.
///
/// # Errors
/// `Aborted` when there is nothing to draw.
pub(super) fn svg(standing: &Standing) -> Result<String> {
    let panels = u32::try_from(standing.curves.len()).unwrap_or(u32::MAX);
    if panels == 0 || standing.sizes.is_empty() {
        return Err(Error::new(ErrorKind::Aborted, "there is nothing to draw"));
    }
    let mut text = String::new();
    draw(standing, panels, &mut text)
        .map_err(|error| Error::new(ErrorKind::Aborted, format!("cannot draw: {error}")))?;
    Ok(text)
}

fn draw(standing: &Standing, panels: u32, text: &mut String) -> Drawn {
    let size = (PANEL_WIDTH.saturating_mul(panels), PANEL_HEIGHT);
    let area = SVGBackend::with_string(text, size).into_drawing_area();
    area.fill(&WHITE)?;
    let parts = area.split_evenly((1, standing.curves.len()));
    for (part, curves) in parts.iter().zip(&standing.curves) {
        panel(part, curves, &standing.sizes)?;
    }
    area.present()?;
    Ok(())
}

/// One line's curves in `area`.
fn panel(area: &Area<'_>, curves: &Curves, sizes: &[u64]) -> Drawn {
    let points = curves.engines.iter().flat_map(|(_, points)| points);
    let highest = points
        .flatten()
        .fold(0.0f64, |max, micros| max.max(*micros));
    let least = sizes.iter().min().map_or(1.0, |size| *size as f64);
    let most = sizes.iter().max().map_or(1.0, |size| *size as f64);
    // Room beside the first and the last point; a single size would make an empty range.
    let entries = (least / 1.5..most * 1.5).log_scale();
    let mut chart = ChartBuilder::on(area)
        .caption(&curves.line, ("sans-serif", 16))
        .margin(10)
        .margin_right(28)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(entries, 0.0..(highest * 1.3).max(1e-3))?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("entries")
        .y_desc("microseconds an operation")
        .x_label_formatter(&|entries| short(entries.round() as u64))
        .draw()?;
    for ((engine, micros), colour) in curves.engines.iter().zip(COLOURS.iter().cycle()) {
        let points: Vec<(f64, f64)> = sizes
            .iter()
            .zip(micros)
            .filter_map(|(entries, micros)| Some((*entries as f64, (*micros)?)))
            .collect();
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))?
            .label(engine)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
        let dots = points.iter().map(|at| Circle::new(*at, 3, colour.filled()));
        chart.draw_series(dots)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.2))
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(sizes: &[u64]) -> Standing {
        let curves = |line: &str| Curves {
            line: line.to_owned(),
            engines: vec![
                ("drumlin".to_owned(), vec![Some(0.5); sizes.len()]),
                ("rocksdb".to_owned(), vec![None; sizes.len()]),
            ],
        };
        Standing {
            sizes: sizes.to_vec(),
            curves: vec![curves("fillrandom"), curves("readrandom")],
            setting: Vec::new(),
        }
    }

    #[test]
    fn every_line_has_a_panel_and_every_point_a_dot() {
        for sizes in [&[1_000_000][..], &[1_000_000, 10_000_000, 100_000_000]] {
            let text = svg(&standing(sizes)).expect("a drawing");
            assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
            assert!(text.contains("fillrandom") && text.contains("readrandom"));
            assert_eq!(text.matches("<circle").count(), 2 * sizes.len());
        }
    }

    #[test]
    fn nothing_measured_is_nothing_drawn() {
        assert!(svg(&standing(&[])).is_err());
    }
}
