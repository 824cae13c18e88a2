//! The threads of hands, as many as the configuration asks for.

use std::sync::Arc;

use drumlin::Result;
use drumlin_fs::net::{Network, Waker};
use drumlin_fs::{Env, machine};
use drumlin_redis_store::Store;

use super::crew::Hands;
use super::hand::Hand;
use super::post::Post;
use super::quick::Quick;
use crate::config::Config;
use crate::table::Table;

/// The loop and its hands together, where the configuration leaves it open: more gain little.
const THREADS_USUAL: usize = 4;

/// Starts them, to run the commands of `table` on `store`; `waker` ends the loop's wait when a connection comes home.
///
/// # Errors
/// When the system has no more threads or descriptors.
pub(crate) fn start(
    config: &Config,
    (env, network): (&Env, &dyn Network),
    (store, table): (&Arc<Store>, &Arc<Table>),
    waker: &Arc<dyn Waker>,
) -> Result<Hands> {
    let threads = match config.number("io-threads") {
        0 => machine::cores_available().min(THREADS_USUAL),
        asked => usize::try_from(asked).unwrap_or(THREADS_USUAL),
    };
    let mut hands = Hands::default();
    for _ in 1..threads {
        let post = Arc::new(Post::new(Arc::clone(waker)));
        let poller = network.poller()?;
        let own_waker = poller.waker();
        let clock = Arc::clone(&env.clock);
        let quick = Quick::new(Arc::clone(store), Arc::clone(table), Arc::clone(&clock));
        let hand = Hand::new(Arc::clone(&post), poller, clock, quick);
        let body = Box::new(move || hand.run());
        let thread = env.spawner.spawn("redis-hand", body)?;
        hands.add(post, own_waker, thread);
    }
    Ok(hands)
}
