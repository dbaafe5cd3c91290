//! The results as a picture: time and bandwidth over the size, as SVG.

use std::fmt::Write as _;

use super::report::{Measured, Report};
use super::sizes;
use super::table::number;

const PANEL: (f64, f64) = (560.0, 360.0);
/// Of a panel's field: from the left and the top of the picture.
const LEFT: f64 = 70.0;
const TOP: f64 = 60.0;
const BELOW: f64 = 60.0;
/// A line of the legend.
const LINE: f64 = 18.0;
/// Colours that people who see some colours alike can tell apart, and that print well.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8b6d00"];

/// The points of a test, with sizes that ascend.
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The picture. Rows without data are not in it.
pub(super) fn svg(report: &Report) -> String {
    let time = series(report, |row| row.window == 1, |row| Some(row.latency_us.median));
    let rate = series(report, |row| row.window > 1, |row| row.mb_per_s);
    let panels: Vec<_> = [("time of an operation, median, µs", time), ("bandwidth, MB/s", rate)]
        .into_iter()
        .filter(|(_, series)| !series.is_empty())
        .collect();
    let lines = panels.iter().map(|(_, series)| series.len()).max().unwrap_or(0);
    let width = LEFT + (PANEL.0 + LEFT) * panels.len().max(1) as f64;
    let height = TOP + PANEL.1 + BELOW + lines as f64 * LINE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    let title = format!(
        "lapi_perf {}: {} tasks, {}, task 0 on {}",
        report.version, report.tasks, report.transport, report.host
    );
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{}</text>", escaped(&title));
    for (number, (title, series)) in panels.iter().enumerate() {
        let left = LEFT + (PANEL.0 + LEFT) * number as f64;
        panel(&mut svg, left, title, series);
    }
    svg + "</svg>\n"
}

fn series(
    report: &Report,
    wanted: impl Fn(&Measured) -> bool,
    value: impl Fn(&Measured) -> Option<f64>,
) -> Vec<Series> {
    let mut found: Vec<Series> = Vec::new();
    for row in report.results.iter().filter(|row| row.size > 0 && wanted(row)) {
        let Some(value) = value(row).filter(|value| *value > 0.0) else { continue };
        let point = (row.size as f64, value);
        match found.iter_mut().find(|series| series.name == row.test) {
            Some(series) => series.points.push(point),
            None => found.push(Series { name: row.test.clone(), points: vec![point] }),
        }
    }
    for series in &mut found {
        series.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    found
}

/// A logarithmic axis from one whole power of its base to another one.
struct Axis {
    base: f64,
    low: i32,
    high: i32,
    length: f64,
}

impl Axis {
    fn new(base: f64, values: impl Iterator<Item = f64> + Clone, length: f64) -> Self {
        let power = |value: f64| value.ln() / base.ln();
        let low = values.clone().map(power).fold(f64::INFINITY, f64::min).floor() as i32;
        let high = values.map(power).fold(f64::NEG_INFINITY, f64::max).ceil() as i32;
        Self { base, low, high: high.max(low + 1), length }
    }

    fn at(&self, value: f64) -> f64 {
        (value.ln() / self.base.ln() - f64::from(self.low)) / f64::from(self.high - self.low) * self.length
    }

    /// The powers that get a line: not more than about eight.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let step = ((self.high - self.low) / 8).max(1) as usize;
        let base = self.base;
        (self.low..=self.high).step_by(step).map(move |power| base.powi(power))
    }
}

fn panel(svg: &mut String, left: f64, title: &str, all: &[Series]) {
    let points = || all.iter().flat_map(|series| series.points.iter().copied());
    let x = Axis::new(2.0, points().map(|point| point.0), PANEL.0);
    let y = Axis::new(10.0, points().map(|point| point.1), PANEL.1);
    let bottom = TOP + PANEL.1;
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{title}</text>", TOP - 10.0);
    let _ = writeln!(
        svg,
        "<rect x=\"{left}\" y=\"{TOP}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>",
        PANEL.0, PANEL.1
    );
    for size in x.ticks() {
        let at = left + x.at(size);
        let text = sizes::text(size as u64);
        let _ = writeln!(svg, "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>");
        let _ =
            writeln!(svg, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>", bottom + 16.0);
    }
    for value in y.ticks() {
        let (at, text) = (bottom - y.at(value), number(value));
        let _ = writeln!(svg, "<path d=\"M{left} {at:.1}H{}\" stroke=\"#ddd\"/>", left + PANEL.0);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 6.0,
            at + 4.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">bytes</text>",
        left + PANEL.0 / 2.0,
        bottom + 34.0
    );
    for (number, series) in all.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        // Colours come again with dashes.
        let dash = if number < COLOURS.len() { "" } else { " stroke-dasharray=\"6 3\"" };
        let places: Vec<String> = series
            .points
            .iter()
            .map(|(size, value)| format!("{:.1},{:.1}", left + x.at(*size), bottom - y.at(*value)))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}><title>{}</title></polyline>",
            places.join(" "),
            escaped(&series.name)
        );
        for place in &places {
            let (cx, cy) = place.split_once(',').unwrap_or_default();
            let _ = writeln!(svg, "<circle cx=\"{cx}\" cy=\"{cy}\" r=\"3\" fill=\"{colour}\"/>");
        }
        let line = bottom + 34.0 + LINE * (number + 1) as f64;
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {}h30\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/><text x=\"{}\" y=\"{line}\">{}</text>",
            line - 4.0,
            left + 38.0,
            escaped(&series.name)
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_whole_powers_at_its_ends() {
        let axis = Axis::new(2.0, [8.0, 100.0].into_iter(), 70.0);
        assert_eq!((axis.low, axis.high), (3, 7));
        assert!(axis.at(8.0).abs() < 1e-9 && (axis.at(128.0) - 70.0).abs() < 1e-9);
        assert_eq!(axis.ticks().collect::<Vec<_>>(), [8.0, 16.0, 32.0, 64.0, 128.0]);
        // One point has an axis, too.
        let axis = Axis::new(10.0, [1.0].into_iter(), 10.0);
        assert_eq!((axis.low, axis.high), (0, 1));
    }
}
