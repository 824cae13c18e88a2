//! All hands, as the loop has them.

use std::sync::Arc;

use drumlin::Result;
use drumlin_fs::JoinHandle;
use drumlin_fs::net::Waker;

use super::lent::Lent;
use super::post::{Post, Terms};
use super::tally::Tally;

#[derive(Debug)]
struct Member {
    post: Arc<Post>,
    waker: Arc<dyn Waker>,
    thread: Box<dyn JoinHandle>,
    /// Connections that it has.
    has: usize,
}

impl Member {
    fn wake(&self) {
        // It needs nothing that a system may lack; and a hand with connections reads its letters after a while all the same.
        drop(self.waker.wake());
    }

    fn end(&self) {
        self.post.end();
        self.wake();
    }
}

/// See the module. The threads end after it.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    members: Vec<Member>,
}

impl Hands {
    /// Takes a hand on, which reads `post`; `waker` ends its waits.
    pub(super) fn add(
        &mut self,
        post: Arc<Post>,
        waker: Arc<dyn Waker>,
        thread: Box<dyn JoinHandle>,
    ) {
        self.members.push(Member {
            post,
            waker,
            thread,
            has: 0,
        });
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.members.len()
    }

    /// Whether any has a connection.
    pub(crate) fn has_any(&self) -> bool {
        self.members.iter().any(|member| member.has > 0)
    }

    /// Lends connections, evenly. Requires: there is a hand.
    pub(super) fn lend(&mut self, lent: Vec<Lent>, terms: Terms) {
        let mut shares: Vec<Vec<Lent>> = self.members.iter().map(|_| Vec::new()).collect();
        for one in lent {
            let members = self.members.iter_mut().zip(&mut shares);
            if let Some((member, share)) = members.min_by_key(|(member, _)| member.has) {
                member.has += 1;
                share.push(one);
            }
        }
        for (member, share) in self.members.iter().zip(shares) {
            if !share.is_empty() {
                member.post.lend(share, terms);
                member.wake();
            }
        }
    }

    /// Calls all connections home, and waits for them.
    pub(super) fn call_home(&mut self) -> Vec<Lent> {
        let mut home = Vec::new();
        for member in self.members.iter_mut().filter(|member| member.has > 0) {
            let came = member.post.call_home(|| member.wake());
            member.has = 0;
            home.extend(came);
        }
        home
    }

    /// The connections that have come home.
    ///
    /// # Errors
    /// When a hand has ended by itself.
    pub(super) fn take_home(&mut self) -> Result<Vec<Lent>> {
        let mut home = Vec::new();
        for member in self.members.iter_mut().filter(|member| member.has > 0) {
            let came = member.post.take_home()?;
            member.has -= came.len();
            home.extend(came);
        }
        Ok(home)
    }

    /// What was counted since the last call.
    pub(super) fn take_tallies(&self) -> impl Iterator<Item = Tally> {
        self.members.iter().map(|member| member.post.take_tally())
    }

    /// Ends the threads. Requires: they have no connections.
    ///
    /// # Errors
    /// When one has ended by a panic.
    pub(crate) fn end(mut self) -> Result<()> {
        let members = std::mem::take(&mut self.members);
        members.iter().for_each(Member::end);
        let mut threads = members.into_iter().map(|member| member.thread);
        threads.try_for_each(|thread| thread.join())
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        self.members.iter().for_each(Member::end);
    }
}
