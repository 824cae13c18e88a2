//! A reader beside a write that fails.

use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_fs::{Fault, FaultRule, FileKind, OpKind, Spawner, StrictMemFileSystem};
use drumlin_resp::Value;
use drumlin_sim::schedule::{End, Order, Scheduler, Tasked, simulate};

use crate::world::{Fsync, STEPS_MAX, World};

/// Whether the reader, who reads nothing that was not written, is told that a write failed.
pub(crate) fn reader_is_told_of_the_error(seed: u64) -> bool {
    let scheduler = Scheduler::new(seed, Order::Random(seed), STEPS_MAX);
    let world = Arc::new(World::new(Fsync::EverySecond, &scheduler, seed));
    let told = Arc::new(Mutex::new(Value::Null));
    let read = Arc::clone(&told);
    match simulate(&scheduler, move || live(&world, &read)) {
        End::Failed(why) => panic!("seed {seed}: {why}"),
        End::Done => {}
    }
    let told = told.lock().clone();
    assert!(
        matches!(told, Value::Null | Value::Error(_)),
        "seed {seed}: {told:?} was never written"
    );
    told != Value::Null
}

fn live(world: &Arc<World>, read: &Arc<Mutex<Value>>) {
    let server = world.start(StrictMemFileSystem::new());
    let fails = FaultRule::always(Fault::Io).on(OpKind::Append);
    let spawner = Tasked(Arc::clone(&world.scheduler));
    let mut writer = world.connect().expect("the server is there");
    let mut reader = world.connect().expect("the server is there");
    world.scheduler.sleep(Duration::from_millis(50));
    server.files.add_rule(fails.of_kind(FileKind::Wal));
    let body = move || {
        let reply = writer.ask(&[["SET", "x", "1"].map(str::to_owned).to_vec()]);
        assert!(matches!(reply, Some(Value::Error(_))), "{reply:?}");
    };
    let task = spawner.spawn("writer", Box::new(body)).expect("a task");
    let reply = reader.ask(&[["GET", "x"].map(str::to_owned).to_vec()]);
    *read.lock() = reply.expect("a reply");
    task.join().expect("a panic ends the run");
    server.stopper.stop().expect("wakes");
    server.thread.join().expect("a panic ends the run");
}
