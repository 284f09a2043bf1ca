//! Draws a screen as SVG.

use std::fmt::Write as _;

use regex::{Captures, Regex};
use vt100::{Cell, Color, Screen};

/// The size of a cell, and the room around the text.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 18.0;
const MARGIN: f32 = 12.0;

/// The colours of a terminal: the eight of the standard, on a dark ground.
const COLORS: [&str; 8] = ["#6e7681", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#c9d1d9"];
const TEXT: &str = "#e6edf3";
const DIM: &str = "#8b949e";

/// Draws the rows from the last one on that begins with `from`, up to the last that is not empty. Elapsed times and the
/// sign of the progress are always the same.
pub(crate) fn draw(screen: &Screen, from: &str) -> String {
    let columns = screen.size().1.get();
    let text: Vec<_> = screen.rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
    let first = text.iter().rposition(|row| row.starts_with(from)).unwrap_or(0);
    let last = text.iter().rposition(|row| !row.is_empty()).unwrap_or(first);
    let row_at = |row: usize| MARGIN + f32::from(u16::try_from(row - first).unwrap()) * HEIGHT;
    let (width, height) = (f32::from(columns) * WIDTH + 2.0 * MARGIN, row_at(last + 1) + MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for row in first..=last {
        let y = row_at(row) + 14.0;
        let number = u16::try_from(row).unwrap();
        let cells: Vec<_> = (0..columns).filter_map(|column| Some((column, screen.cell(number, column)?))).collect();
        for run in cells.chunk_by(|(_, a), (_, b)| style(a) == style(b)) {
            let shown: String = run.iter().map(|(_, cell)| content(cell)).collect();
            if shown.trim().is_empty() {
                continue;
            }
            let x = MARGIN + f32::from(run[0].0) * WIDTH;
            // Writing to a string does not fail.
            _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.0}\" xml:space=\"preserve\"{}>{}</text>",
                style(run[0].1),
                escaped(shown.trim_end())
            );
        }
    }
    svg + "</svg>\n"
}

fn content(cell: &Cell) -> &str {
    match cell.contents() {
        "" if cell.is_wide_continuation() => "",
        "" => " ",
        content => content,
    }
}

fn style(cell: &Cell) -> String {
    let color = match cell.fgcolor() {
        Color::Idx(index) => COLORS[usize::from(index % 8)].to_owned(),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        Color::Default if cell.dim() => DIM.to_owned(),
        Color::Default => TEXT.to_owned(),
    };
    let mut style = format!(" fill=\"{color}\"");
    for (is_set, attribute) in [
        (cell.bold(), " font-weight=\"bold\""),
        (cell.italic(), " font-style=\"italic\""),
        (cell.underline(), " text-decoration=\"underline\""),
    ] {
        style.push_str(if is_set { attribute } else { "" });
    }
    style
}

fn escaped(text: &str) -> String {
    let text = Regex::new(r"\d+\.\d s")
        .unwrap()
        .replace_all(text, |times: &Captures<'_>| "1.2 s".to_owned() + &" ".repeat(times[0].len() - 5));
    let text = Regex::new("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]").unwrap().replace_all(&text, "⠼");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").trim_end().to_owned()
}
