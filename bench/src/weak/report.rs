//! The table of a comparison, and what holds.

use coapway_lab::Estimate;

use super::figures::{Figures, MEAN, MEASURES, P95, Prediction, over};
use super::relay::Passed;

/// One share of loss.
pub(super) struct Cell {
    /// Lost in each direction, a share.
    pub(super) loss: f64,
    /// By proxy, what came of each link; coapway is the first.
    pub(super) measured: Vec<(String, Vec<Figures>)>,
    /// Of coapway.
    pub(super) predicted: Prediction,
}

impl Cell {
    /// Measured over simulated, the very same runs.
    fn over_same(&self, measure: usize) -> Estimate {
        let (Some((_, measured)), simulated) = (self.measured.first(), &self.predicted.same) else {
            return NONE;
        };
        let middle = over(simulated, measure).mean;
        let pairs = measured.iter().zip(simulated);
        let difference =
            Estimate::of(pairs.map(|(measured, simulated)| measured[measure] - simulated[measure]));
        Estimate { mean: 1.0 + difference.mean / middle, within: difference.within / middle }
    }

    /// Measured over simulated by other chance.
    fn over_others(&self, measure: usize) -> Estimate {
        let Some((_, measured)) = self.measured.first() else { return NONE };
        let (one, other) = (over(measured, measure), over(&self.predicted.others, measure));
        let mean = one.mean / other.mean;
        Estimate { mean, within: mean * (one.within / one.mean).hypot(other.within / other.mean) }
    }

    fn rows(&self) -> String {
        let row = |what: &str, cells: [String; MEASURES.len()]| {
            format!("| {} % | {what} | {} |\n", percent(self.loss), cells.join(" | "))
        };
        let places = [0, 1, 2, 3];
        let of = |runs: &[Figures]| places.map(|measure| shown(over(runs, measure), measure));
        let ratios =
            |ratio: &dyn Fn(usize) -> Estimate| places.map(|measure| interval(ratio(measure), 1.0, 3));
        let mut measured = self.measured.iter();
        let mut text = String::new();
        if let Some((name, runs)) = measured.next() {
            text += &row(&format!("{name}, measured"), of(runs));
        }
        text += &row("simulated, the same requests and losses", of(&self.predicted.same));
        text += &row("simulated, by other chance", of(&self.predicted.others));
        text += &row("× the same", ratios(&|measure| self.over_same(measure)));
        text += &row("× other chance", ratios(&|measure| self.over_others(measure)));
        for (name, runs) in measured {
            text += &row(&format!("{name}, measured"), of(runs));
        }
        text
    }

    /// Whether mean and P95 are what they should be, within this share.
    ///
    /// What was simulated by other chance differs by chance too: there the interval has to reach into the share.
    pub(super) fn verdicts(&self, within: f64) -> [(bool, String); 2] {
        let same = [MEAN, P95].map(|measure| self.over_same(measure));
        let others = [MEAN, P95].map(|measure| self.over_others(measure));
        let told = |[mean, p95]: [Estimate; 2], what: &str| {
            let [mean, p95] = [mean, p95].map(|ratio| interval(ratio, 1.0, 3));
            format!("{} % lost each way: mean {mean}, P95 {p95} times {what}", percent(self.loss))
        };
        let off = |ratio: Estimate| (ratio.mean - 1.0).abs();
        [
            (
                same.iter().all(|&ratio| off(ratio) <= within),
                told(same, "what is simulated with the same requests and losses")
                    + &format!("; 1 ±{within} is wanted"),
            ),
            (
                others.iter().all(|&ratio| off(ratio) - ratio.within <= within),
                told(others, "what is simulated by other chance")
                    + &format!("; not surely out of 1 ±{within}"),
            ),
        ]
    }
}

const NONE: Estimate = Estimate { mean: f64::NAN, within: f64::NAN };

/// All cells.
pub(super) fn table(cells: &[Cell]) -> String {
    let mut text = "| lost each way | | mean, s | P95, s | answered, % | copies per request |\n|--:|:--|--:|--:|--:|--:|\n"
        .to_owned();
    cells.iter().for_each(|cell| text += &cell.rows());
    text
}

/// What passed over the links of a proxy.
pub(super) fn passed(loss: f64, proxy: &str, passed: &mut Passed) -> String {
    let share = |way: usize| 100.0 * passed.lost[way] as f64 / passed.came[way].max(1) as f64;
    let (up, down) = (share(0), share(1));
    let late = [0.5, 0.99, 1.0].map(|share| passed.late.quantile(share) / 1e3);
    format!(
        "{} %, {proxy}: {} datagrams up, {up:.2} % of them lost, {} down, {down:.2} % of them lost; held up \
         {:.2} ms too long (P50), {:.2} ms (P99), {:.1} ms (most)",
        percent(loss),
        passed.came[0],
        passed.came[1],
        late[0],
        late[1],
        late[2]
    )
}

fn shown(estimate: Estimate, measure: usize) -> String {
    match MEASURES[measure] {
        "answered" => interval(estimate, 100.0, 2),
        _ => interval(estimate, 1.0, 3),
    }
}

fn interval(Estimate { mean, within }: Estimate, scale: f64, digits: usize) -> String {
    match (mean.is_finite(), within.is_finite()) {
        (false, _) => "–".into(),
        (true, false) => format!("{:.digits$}", mean * scale),
        (true, true) => format!("{:.digits$} ±{:.digits$}", mean * scale, within * scale),
    }
}

fn percent(share: f64) -> f64 {
    (share * 1e4).round() / 1e2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(measured: &[Figures], same: &[Figures], others: &[Figures]) -> Cell {
        Cell {
            loss: 0.15,
            measured: vec![("coapway".into(), measured.to_vec()), ("peer".into(), vec![[f64::NAN; 4]; 2])],
            predicted: Prediction { same: same.to_vec(), others: others.to_vec() },
        }
    }

    fn run(mean: f64, p95: f64) -> Figures {
        [mean, p95, 0.5, 2.0]
    }

    #[test]
    fn the_same_runs_are_compared_one_by_one() {
        let cell = cell(
            &[run(1.1, 2.0), run(2.1, 4.0)],
            &[run(1.0, 2.0), run(2.0, 4.0)],
            &[run(1.0, 3.0), run(1.0, 3.0)],
        );
        let same = cell.over_same(MEAN);
        assert!((same.mean - 1.1 / 1.5 - 0.5 / 1.5).abs() < 1e-9 && same.within < 1e-9, "{same:?}");
        let others = cell.over_others(MEAN);
        assert!((others.mean - 1.6).abs() < 1e-9 && others.within > 1.0, "{others:?}");
        assert_eq!(cell.over_others(P95).mean, 1.0);
        let [(same, words), _] = cell.verdicts(0.15);
        assert!(same && words.starts_with("15 % lost each way: mean 1.067"), "{words}");
        assert!(!cell.verdicts(0.05)[0].0);
    }

    #[test]
    fn other_chance_contradicts_only_when_it_is_sure() {
        let others = [run(1.0, 1.0), run(1.0, 1.0)];
        let holds = |measured: [Figures; 2]| cell(&measured, &measured, &others).verdicts(0.15)[1].0;
        assert!(holds([run(1.0, 1.0), run(1.1, 1.1)]));
        assert!(holds([run(1.0, 1.0), run(2.0, 1.0)]), "two runs so far apart say nothing");
        assert!(!holds([run(2.0, 1.0), run(2.01, 1.0)]));
        assert!(!holds([run(1.0, 2.0), run(1.0, 2.01)]));
    }

    #[test]
    fn a_row_has_the_interval_and_a_dash_where_nothing_is_known() {
        let runs = [run(1.0, 2.0), run(1.0, 2.0)];
        let text = table(&[cell(&runs, &runs, &runs)]);
        assert!(
            text.contains("| 15 % | coapway, measured | 1.000 ±0.000 | 2.000 ±0.000 | 50.00 ±0.00 |"),
            "{text}"
        );
        assert!(text.contains("| 15 % | × the same | 1.000 ±0.000 |"), "{text}");
        assert!(text.contains("| 15 % | peer, measured | – | – | – | – |"), "{text}");
    }

    #[test]
    fn nothing_holds_that_is_not_known() {
        let unknown = [[f64::NAN; 4]; 2];
        assert!(cell(&unknown, &unknown, &unknown).verdicts(0.15).iter().all(|(holds, _)| !holds));
    }
}
