//! redis-rs as applications use it.

use std::collections::{HashMap, HashSet};
use std::process::{Command, ExitCode};
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::ConnectionManager;
use redis::streams::{StreamReadOptions, StreamReadReply};
use redis::{AsyncCommands, Client, Commands, Connection, ProtocolVersion, RedisResult, Script};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn url(protocol: &str) -> String {
    let port = std::env::var("REDIS_PORT").expect("REDIS_PORT");
    format!("redis://127.0.0.1:{port}/?protocol={protocol}")
}

fn same<T: PartialEq + std::fmt::Debug>(got: T, wanted: T) -> Outcome {
    match got == wanted {
        true => Ok(()),
        false => Err(format!("{got:?}, not {wanted:?}").into()),
    }
}

fn values(r: &mut Connection) -> Outcome {
    let () = r.set_ex("k", "v", 100)?;
    same(r.get::<_, Option<String>>("missing")?, None)?;
    let () = r.hset_multiple("h", &[("a", "1"), ("b", "two")])?;
    let hash: HashMap<String, String> = r.hgetall("h")?;
    same(hash.len(), 2)?;
    let () = r.zadd("z", "m", 1.5)?;
    same(r.zrange_withscores::<_, Vec<(String, f64)>>("z", 0, -1)?, vec![("m".to_owned(), 1.5)])
}

fn pipelines(r: &mut Connection) -> Outcome {
    let mut pipe = redis::pipe();
    for i in 0..10_000 {
        pipe.set(format!("p{i}"), i).ignore();
    }
    for i in 0..10_000 {
        pipe.get(format!("p{i}"));
    }
    same(pipe.query::<Vec<i64>>(r)?, (0..10_000).collect())?;
    let keys: HashSet<String> = r.scan_match::<_, String>("p*")?.collect::<RedisResult<_>>()?;
    same(keys.len(), 10_000)
}

fn transactions(r: &mut Connection) -> Outcome {
    let () = r.set("stock", 5)?;
    let mut tries = 0;
    let mut other = Client::open(url("resp2"))?.get_connection()?;
    let left: (i64,) = redis::transaction(r, &["stock"], |r, pipe| {
        tries += 1;
        let stock: i64 = r.get("stock")?;
        if tries == 1 {
            let () = other.set("stock", 9)?;
        }
        pipe.set("stock", stock - 1).ignore().get("stock").query(r)
    })?;
    same((left.0, tries), (8, 2))
}

fn scripts(r: &mut Connection) -> Outcome {
    let add = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    let () = r.del("n")?;
    same(add.key("n").arg(3).invoke::<i64>(r)?, 3)?;
    let () = redis::cmd("SCRIPT").arg("FLUSH").query(r)?;
    same(add.key("n").arg(4).invoke::<i64>(r)?, 7)
}

fn channels(r: &mut Connection) -> Outcome {
    let mut own = Client::open(url("resp2"))?.get_connection()?;
    let mut sub = own.as_pubsub();
    sub.subscribe("news")?;
    same(r.publish::<_, _, i64>("news", "hello")?, 1)?;
    same(sub.get_message()?.get_payload::<String>()?, "hello".to_owned())
}

fn blocking_pops(r: &mut Connection) -> Outcome {
    let waits = std::thread::spawn(|| -> RedisResult<(String, String)> {
        Client::open(url("resp2"))?.get_connection()?.blpop(&["q1", "q2"], 10.0)
    });
    while !redis::cmd("INFO").arg("clients").query::<String>(r)?.contains("blocked_clients:1") {
        std::thread::sleep(Duration::from_millis(5));
    }
    let () = r.rpush("q2", "job")?;
    same(waits.join().expect("no panic")?, ("q2".to_owned(), "job".to_owned()))
}

fn streams(r: &mut Connection) -> Outcome {
    for i in 0..100 {
        let _: String = r.xadd("s", "*", &[("n", i)])?;
    }
    let () = r.xgroup_create("s", "g", "0")?;
    let (options, mut done) = (StreamReadOptions::default().group("g", "c").count(9), 0);
    loop {
        let reply: Option<StreamReadReply> = r.xread_options(&["s"], &[">"], &options)?;
        let Some(stream) = reply.and_then(|it| it.keys.into_iter().next()) else {
            return same(done, 100);
        };
        let ids: Vec<_> = stream.ids.iter().map(|it| it.id.as_str()).collect();
        done += r.xack::<_, _, _, i64>("s", "g", &ids)?;
    }
}

/// Many tasks on one connection, in RESP3 with pushed invalidations, and a kill.
async fn asynchronous() -> Outcome {
    let client = Client::open(url("resp3"))?;
    let manager = ConnectionManager::new(client.clone()).await?;
    let mut tasks = Vec::new();
    for i in 0..1_000 {
        let mut r = manager.clone();
        tasks.push(tokio::spawn(async move { r.incr::<_, _, i64>("hits", i % 2).await }));
    }
    for task in tasks {
        task.await??;
    }
    let mut r = manager.clone();
    same(r.get::<_, i64>("hits").await?, 500)?;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let config = redis::AsyncConnectionConfig::new().set_push_sender(tell);
    let mut tracked = client.get_multiplexed_async_connection_with_config(&config).await?;
    let () = redis::cmd("CLIENT").arg("TRACKING").arg("ON").query_async(&mut tracked).await?;
    let _: Option<i64> = tracked.get("hits").await?;
    let () = r.set("hits", 1).await?;
    let push = tokio::time::timeout(Duration::from_secs(10), told.recv()).await?.ok_or("closed")?;
    same(push.kind, redis::PushKind::Invalidate)?;
    let mut sub = client.get_async_pubsub().await?;
    sub.subscribe("later").await?;
    let () = r.publish("later", 7).await?;
    let message = sub.on_message().next().await.ok_or("no message")?;
    same(message.get_payload::<i64>()?, 7)?;
    restart()?;
    for _ in 0..200 {
        if let Ok(got) = r.get::<_, i64>("hits").await {
            return same(got, 1);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err("no connection again".into())
}

fn restart() -> Outcome {
    let status = Command::new(std::env::var("RESTART_SERVER")?).status()?;
    same(status.success(), true)
}

type Check = (&'static str, fn(&mut Connection) -> Outcome);

const CHECKS: &[Check] = &[
    ("values", values),
    ("pipelines", pipelines),
    ("transactions", transactions),
    ("scripts", scripts),
    ("channels", channels),
    ("blocking pops", blocking_pops),
    ("streams", streams),
];

#[tokio::main]
async fn main() -> ExitCode {
    let (mut passed, mut failed) = (0, 0);
    let mut tell = |name: &str, outcome: Outcome| match outcome {
        Ok(()) => {
            passed += 1;
            println!("ok {name}");
        }
        Err(error) => {
            failed += 1;
            println!("FAILED {name}: {error}");
        }
    };
    for (protocol, version) in [("resp2", ProtocolVersion::RESP2), ("resp3", ProtocolVersion::RESP3)] {
        let client = Client::open(url(protocol)).expect("a URL");
        let mut r = client.get_connection().expect("connects");
        let () = redis::cmd("FLUSHALL").query(&mut r).expect("empties");
        for (name, check) in CHECKS {
            tell(&format!("{name} in {version:?}"), check(&mut r));
        }
    }
    tell("asynchronous, tracked, and killed", asynchronous().await);
    println!("{passed} passed, {failed} failed");
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
