//! Who looks, while a command works, whether it is to go on: work on a single document may take hours, an array within an array within an
//! array of a million elements each.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::refusal::Outcome;

/// Steps between two looks.
const STEPS: u32 = 128;

type Look = dyn Fn() -> Outcome<()>;

thread_local! {
    static LOOK: RefCell<Option<Rc<Look>>> = const { RefCell::new(None) };
    static LEFT: Cell<u32> = const { Cell::new(STEPS) };
}

/// The watch that there was before, set again at the end, after a panic as well.
struct Before(Option<Rc<Look>>);

impl Drop for Before {
    fn drop(&mut self) {
        LOOK.set(self.0.take());
    }
}

/// Does `work`, with `look` asked now and then, on this thread, whether to go on: its refusal ends the work. Within another watch only the
/// inner one looks.
pub fn watched<T>(look: impl Fn() -> Outcome<()> + 'static, work: impl FnOnce() -> T) -> T {
    let _before = Before(LOOK.replace(Some(Rc::new(look))));
    work()
}

/// A piece of work, of a microsecond or so: an element, an entry, a document. Costs a nanosecond or two.
///
/// # Errors
/// That of the watch.
pub fn step() -> Outcome<()> {
    match LEFT.get().checked_sub(1) {
        Some(left) => {
            LEFT.set(left);
            Ok(())
        }
        None => {
            LEFT.set(STEPS);
            let look = LOOK.with_borrow(Clone::clone);
            look.map_or(Ok(()), |look| look())
        }
    }
}
