//! Lines over time, as SVG.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
/// What is kept free around a chart for its labels.
const MARGIN: f64 = 48.0;

/// One chart.
pub struct Chart<'a> {
    /// What is above it: the unit of the values.
    pub title: &'a str,
    /// What is below it: the unit of time.
    pub x_label: &'a str,
    pub series: &'a [Series],
}

/// One line.
pub struct Series {
    pub name: &'static str,
    pub colour: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// A picture of charts, one below the other.
pub fn page(charts: &[Chart<'_>]) -> String {
    let height = HEIGHT * charts.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (number, chart) in charts.iter().enumerate() {
        chart.draw(number as f64 * HEIGHT, &mut svg);
    }
    svg + "</svg>\n"
}

impl Chart<'_> {
    fn draw(&self, top: f64, svg: &mut String) {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let (x_max, y_max) = (all().fold(0.0, |max, (x, _)| x.max(max)), all().fold(0.0, |max, (_, y)| y.max(max)));
        let (right, bottom) = (WIDTH - MARGIN, top + HEIGHT - MARGIN);
        let x = |value: f64| MARGIN + value / x_max.max(f64::MIN_POSITIVE) * (right - MARGIN);
        let y = |value: f64| bottom - value / y_max.max(f64::MIN_POSITIVE) * (bottom - top - MARGIN);
        let mut text = |x: f64, y: f64, colour: &str, text: &str| {
            writeln!(svg, "<text x=\"{x:.0}\" y=\"{y:.0}\" fill=\"{colour}\">{text}</text>").expect("text takes text");
        };
        text(MARGIN, top + 24.0, "black", self.title);
        text(4.0, y(y_max) + 4.0, "black", &format!("{y_max:.1}"));
        text(4.0, bottom, "black", "0");
        text(right - 60.0, bottom + 18.0, "black", &format!("{x_max:.0} {}", self.x_label));
        for (number, series) in self.series.iter().enumerate() {
            text(right - 160.0 + 80.0 * number as f64, top + 24.0, series.colour, series.name);
        }
        writeln!(svg, "<path d=\"M{MARGIN} {} V{bottom} H{right}\" fill=\"none\" stroke=\"black\"/>", top + MARGIN)
            .expect("text takes text");
        for series in self.series {
            let points: Vec<_> =
                series.points.iter().map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
            let (points, colour) = (points.join(" "), series.colour);
            writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\"/>")
                .expect("text takes text");
        }
    }
}
