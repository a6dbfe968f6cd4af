//! All worlds side by side, and what whoever watches does to them.

use std::collections::VecDeque;
use std::time::Duration;

use coapway_time::Instant;

use crate::command::Command;
use crate::devices::Requests;
use crate::figures::Summary;
use crate::history::SPAN;
use crate::place::{Place, Told};
use crate::policy::Policy;
use crate::story::{Line, Scene, Story};
use crate::weather::{Sky, Weather};

/// How often the devices' next requests are planned and what was learned is noted.
const TICK: Duration = Duration::from_millis(250);

/// The demo, in virtual time.
#[derive(Debug)]
pub struct Demo {
    seed: u64,
    now: Instant,
    tick: Instant,
    weather: Weather,
    requests: Requests,
    places: Vec<Place>,
    shown: Policy,
    slow: bool,
    forgetful: bool,
    /// Outages within the chart: from when, until when.
    outages: VecDeque<(Instant, Option<Instant>)>,
    story: Story,
    /// What the story has not been told yet: it hears of it at times that do not depend on who looks when.
    untold: Vec<(Instant, Told)>,
}

impl Demo {
    /// Everything at its beginning; one seed is one weather.
    pub fn new(seed: u64) -> Self {
        let weather = Weather::new(seed);
        let places = Policy::ALL.map(|policy| Place::new(policy, seed, &weather.sky()));
        let mut demo = Self {
            seed,
            now: Instant::ZERO,
            tick: Instant::ZERO,
            weather,
            requests: Requests::new(seed),
            places: places.into(),
            shown: Policy::Learned,
            slow: false,
            forgetful: false,
            outages: VecDeque::new(),
            story: Story::default(),
            untold: Vec::new(),
        };
        demo.tick();
        demo
    }

    /// Lets everything happen up to `until`; how often it is called makes no difference.
    pub fn run_until(&mut self, until: Instant) {
        while self.now < until {
            let next = until.min(self.tick).min(self.weather.next()).max(self.now);
            for place in &mut self.places {
                let told = place.run_until(next);
                if place.policy() == self.shown {
                    self.untold.extend(told);
                }
            }
            self.now = next;
            if self.weather.next() <= next {
                self.tell();
                let before = self.weather.sky();
                self.weather.handle_timeout(next);
                self.turned(before);
            }
            if self.tick <= next {
                self.tell();
                self.tick();
            }
        }
    }

    /// Does what whoever watches asks for.
    pub fn perform(&mut self, command: Command) {
        self.tell();
        let before = self.weather.sky();
        match command {
            Command::MoreLoss => self.weather.change_loss(true),
            Command::LessLoss => self.weather.change_loss(false),
            Command::Outage => self.weather.toggle_outage(),
            Command::SlowOrigin => self.slow = !self.slow,
            Command::ForgetfulOrigin => self.forgetful = !self.forgetful,
            Command::Estimator if self.shown == Policy::Fixed => self.shown = Policy::Learned,
            Command::Estimator => self.shown = Policy::Fixed,
            Command::Deduplicates if self.shown == Policy::Deduplicates => self.shown = Policy::Learned,
            Command::Deduplicates => self.shown = Policy::Deduplicates,
            Command::Show(Policy::Bare) => {}
            Command::Show(policy) => self.shown = policy,
            Command::Reset => self.places.iter_mut().for_each(Place::reset),
        }
        for place in &mut self.places {
            place.set_origin(self.slow, self.forgetful);
        }
        self.turned(before);
        let scene = scene(&self.places, &self.weather, self.shown, self.now);
        self.story.asked(command, (self.slow, self.forgetful), &scene);
    }

    /// How much of it has passed.
    pub const fn elapsed(&self) -> Duration {
        self.now.since(Instant::ZERO)
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The policy that is shown at work.
    pub const fn shown(&self) -> Policy {
        self.shown
    }

    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn sky(&self) -> Sky {
        self.weather.sky()
    }

    pub(crate) const fn origin(&self) -> (bool, bool) {
        (self.slow, self.forgetful)
    }

    /// The world that is shown at work.
    pub(crate) fn place(&self) -> &Place {
        &self.places[self.shown.index()]
    }

    pub(crate) fn summaries(&self) -> Vec<(Policy, Summary)> {
        self.places.iter().map(|place| (place.policy(), place.summary())).collect()
    }

    pub(crate) const fn outages(&self) -> &VecDeque<(Instant, Option<Instant>)> {
        &self.outages
    }

    pub(crate) const fn line(&self) -> &Line {
        self.story.line()
    }

    /// What was told since the last call.
    pub(crate) fn take_lines(&mut self) -> Vec<(Instant, Line)> {
        self.story.take_lines()
    }

    /// Lines stay as long as somebody needs to read them, however fast time passes.
    pub(crate) fn set_speed(&mut self, speed: f64) {
        self.story.set_speed(speed);
    }

    fn tell(&mut self) {
        let scene = scene(&self.places, &self.weather, self.shown, self.now);
        self.story.told(&std::mem::take(&mut self.untold), &scene);
    }

    /// The weather may have changed.
    fn turned(&mut self, before: Sky) {
        let sky = self.weather.sky();
        if sky == before {
            return;
        }
        self.places.iter_mut().for_each(|place| place.set_sky(&sky));
        if sky.outage && !before.outage {
            self.outages.push_back((self.now, None));
        } else if let (false, Some((_, until @ None))) = (sky.outage, self.outages.back_mut()) {
            *until = Some(self.now);
        }
        self.story.turned(before, &scene(&self.places, &self.weather, self.shown, self.now));
    }

    fn tick(&mut self) {
        self.tick = self.now + TICK;
        for (device, request) in self.requests.before(self.tick) {
            self.places.iter_mut().for_each(|place| place.ask(device, request.clone()));
        }
        self.places.iter_mut().for_each(|place| place.sample(self.now));
        let now = self.now;
        while self.outages.pop_front_if(|(_, until)| until.is_some_and(|until| until + SPAN < now)).is_some()
        {
        }
        self.story.tick(&scene(&self.places, &self.weather, self.shown, self.now));
    }
}

fn scene<'d>(places: &'d [Place], weather: &Weather, shown: Policy, now: Instant) -> Scene<'d> {
    Scene {
        now,
        sky: weather.sky(),
        usual_loss: weather.usual_loss(),
        tour: weather.is_on_tour(),
        places,
        shown,
    }
}

#[cfg(test)]
mod tests;
