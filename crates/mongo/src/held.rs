//! Memory that is charged to the budget as long as it is held.

use std::sync::Arc;

use drumlin::Account;

/// Steps in which it is charged, so that small changes cost nothing.
const STEP_BYTES: usize = 4 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Held {
    account: Arc<Account>,
    bytes: usize,
}

impl Held {
    /// Nothing yet.
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        Self {
            account: Arc::clone(account),
            bytes: 0,
        }
    }

    /// Holds as many bytes from now on, less than a step more or less.
    pub(crate) fn set(&mut self, bytes: usize) {
        let bytes = bytes - bytes % STEP_BYTES;
        match bytes >= self.bytes {
            true if bytes == self.bytes => {}
            true => self.account.charge(bytes - self.bytes),
            false => self.account.release(self.bytes - bytes),
        }
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::MemoryBudget;

    use super::*;

    #[test]
    fn what_is_held_is_charged_and_given_back() {
        let account = MemoryBudget::new(1 << 20).account("queries");
        let mut first = Held::new(&account);
        let mut second = Held::new(&account);
        first.set(100);
        assert_eq!(account.bytes(), 0);
        first.set(3 * STEP_BYTES + 5);
        second.set(STEP_BYTES);
        assert_eq!(account.bytes(), 4 * STEP_BYTES);
        first.set(STEP_BYTES);
        assert_eq!(account.bytes(), 2 * STEP_BYTES);
        drop(second);
        assert_eq!(account.bytes(), STEP_BYTES);
        drop(first);
        assert_eq!(account.bytes(), 0);
    }
}
