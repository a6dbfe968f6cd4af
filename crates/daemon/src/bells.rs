//! Who woke us: so that a task with many sources asks only those that have something to say.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

/// One waker for each source of a task, by numbers.
///
/// A source is polled with [`Bells::context`]. Once it wakes that, its number is among those that
/// [`Bells::rung`] gives, and the task that last called [`Bells::attend`] is woken.
#[derive(Debug, Default)]
pub(crate) struct Bells {
    house: Arc<House>,
    bells: Vec<Waker>,
}

#[derive(Debug, Default)]
struct House(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By number: whether it is in `rung`.
    has_rung: Vec<bool>,
    rung: Vec<usize>,
    task: Option<Waker>,
}

#[derive(Debug)]
struct Bell {
    number: usize,
    house: Arc<House>,
}

impl House {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self, number: usize) {
        let state = &mut *self.state();
        let Some(has_rung) = state.has_rung.get_mut(number) else { return };
        if !std::mem::replace(has_rung, true) {
            state.rung.push(number);
            if let Some(task) = &state.task {
                task.wake_by_ref();
            }
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.house.ring(self.number);
    }
}

impl Bells {
    /// So many bells, numbered from 0. They have rung: the first poll of each source is due.
    pub(crate) fn new(count: usize) -> Self {
        let mut bells = Self::default();
        (0..count).for_each(|number| bells.add(number));
        bells
    }

    /// Adds a bell with this number, unless there is one. It has rung: the first poll of its source is due.
    pub(crate) fn add(&mut self, number: usize) {
        while self.bells.len() <= number {
            let bell = Bell { number: self.bells.len(), house: Arc::clone(&self.house) };
            self.bells.push(Waker::from(Arc::new(bell)));
            self.house.state().has_rung.push(false);
        }
        self.house.ring(number);
    }

    /// What to poll source `number` with.
    pub(crate) fn context(&self, number: usize) -> Context<'_> {
        Context::from_waker(self.bells.get(number).unwrap_or(Waker::noop()))
    }

    /// Lets a source ring that has more to say, or was not listened to the end.
    pub(crate) fn ring(&self, number: usize) {
        self.house.ring(number);
    }

    /// From now on wakes the task of `cx`. Ask for [`Bells::rung`] after that.
    pub(crate) fn attend(&self, cx: &Context<'_>) {
        let task = &mut self.house.state().task;
        if !task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            *task = Some(cx.waker().clone());
        }
    }

    /// Moves the numbers of those that have rung since the last call to the end of `numbers`.
    pub(crate) fn rung(&self, numbers: &mut Vec<usize>) {
        let state = &mut *self.house.state();
        for &number in &state.rung {
            if let Some(has_rung) = state.has_rung.get_mut(number) {
                *has_rung = false;
            }
        }
        numbers.append(&mut state.rung);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(bells: &Bells) -> Vec<usize> {
        let mut numbers = Vec::new();
        bells.rung(&mut numbers);
        numbers
    }

    struct Count(std::sync::atomic::AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    #[test]
    fn each_source_rings_once_however_often_it_wakes() {
        let bells = Bells::new(2);
        let [first, second] = [0, 1];
        assert_eq!(rung(&bells), [first, second], "the first poll is due");
        for _ in 0..3 {
            bells.context(second).waker().wake_by_ref();
        }
        assert_eq!(rung(&bells), [second]);
        assert!(rung(&bells).is_empty());
        bells.ring(first);
        assert_eq!(rung(&bells), [first]);
    }

    #[test]
    fn wakes_the_task_that_attends() {
        let bells = Bells::new(1);
        let [one, other] = [(); 2].map(|()| Arc::new(Count(0.into())));
        let count = |task: &Arc<Count>| task.0.load(std::sync::atomic::Ordering::Relaxed);
        let number = 0;
        assert_eq!(rung(&bells), [number]);
        for task in [&one, &other] {
            bells.attend(&Context::from_waker(&Waker::from(Arc::clone(task))));
            bells.context(number).waker().wake_by_ref();
            assert_eq!(rung(&bells), [number]);
        }
        assert_eq!([count(&one), count(&other)], [1, 1]);
    }
}
