//! Commands parsed and replies written a second, on one core.
//!
//! `cargo run --release -p drumlin-resp --example resp [MILLIONS]`: pipelines of `SET` with keys of 16 bytes and values
//! of 128, in reads of 16 KiB as a server's loop has them; each figure is the best of five runs and their spread.

#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::disallowed_methods, reason = "an example measures time")]

use std::hint::black_box;
use std::time::Instant;

use drumlin_resp::{
    Protocol, ReplyLimits, ReplyParser, ReplyWriter, RequestLimits, RequestParser, encode_command,
};

type Error = Box<dyn std::error::Error>;

const RUNS: usize = 5;
/// Commands that are made once and come over and over.
const PIPELINE: usize = 10_000;
const READ_BYTES: usize = 16 << 10;
const VALUE: [u8; 128] = [b'v'; 128];

fn main() -> Result<(), Error> {
    let millions: usize = std::env::args().nth(1).map_or(Ok(2), |n| n.parse())?;
    let rounds = (millions * 1_000_000 / PIPELINE).max(1);
    let mut requests = Vec::new();
    for number in 0..PIPELINE {
        let key = format!("key:{number:012}");
        encode_command(&mut requests, &[b"SET", key.as_bytes(), &VALUE]);
    }
    measure("requests parsed", rounds, || parse(&requests))?;
    let words = b"SET key:000000000001 value\r\n".repeat(PIPELINE);
    measure("inline requests parsed", rounds, || parse(&words))?;
    measure("+OK written", rounds, || write(|replies| replies.ok()))?;
    measure("values of 128 bytes written", rounds, || {
        write(|replies| replies.bulk(&VALUE))
    })?;
    measure("integers written", rounds, || {
        write(|replies| replies.integer(black_box(123_456)))
    })?;
    measure("arrays of ten, counted late, written", rounds, || {
        write(|replies| {
            let mark = replies.begin_array();
            (0..10).for_each(|number| replies.integer(number));
            replies.finish(mark, black_box(10));
        })
    })?;
    let mut replies = ReplyWriter::new(Protocol::Resp3);
    (0..PIPELINE).for_each(|_| replies.bulk(&VALUE));
    let replies = replies.take();
    measure("values of 128 bytes read by a client", rounds, || {
        read(&replies)
    })
}

/// Prints how often a second `run` does what it counts.
fn measure(
    name: &str,
    rounds: usize,
    mut run: impl FnMut() -> Result<usize, Error>,
) -> Result<(), Error> {
    let mut rates = Vec::new();
    for _ in 0..RUNS {
        let begin = Instant::now();
        let mut count = 0;
        for _ in 0..rounds {
            count += run()?;
        }
        rates.push(count as f64 / begin.elapsed().as_secs_f64() / 1e6);
    }
    let best = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let nanoseconds = 1e3 / best;
    println!("{name:38} {best:7.2} M/s ({least:.2} at least), {nanoseconds:6.1} ns each");
    Ok(())
}

/// A server's loop: reads, commands, and what is left to the front.
fn parse(requests: &[u8]) -> Result<usize, Error> {
    let mut parser = RequestParser::new(RequestLimits::default());
    let (mut buffer, mut count) = (Vec::with_capacity(2 * READ_BYTES), 0);
    for piece in requests.chunks(READ_BYTES) {
        buffer.extend_from_slice(piece);
        let mut consumed = 0;
        while let Some(request) = parser.parse(buffer.get(consumed..).unwrap_or_default())? {
            consumed += request.consumed;
            count += 1;
            black_box(request.args.get(2));
        }
        buffer.drain(..consumed);
    }
    Ok(count)
}

/// A pipeline's answers in a buffer that is sent and cleared.
fn write(mut reply: impl FnMut(&mut ReplyWriter)) -> Result<usize, Error> {
    let mut replies = ReplyWriter::new(Protocol::Resp2);
    for _ in 0..PIPELINE {
        reply(&mut replies);
        if replies.bytes().len() >= READ_BYTES {
            black_box(replies.bytes());
            replies.buffer_mut().clear();
        }
    }
    Ok(PIPELINE)
}

fn read(replies: &[u8]) -> Result<usize, Error> {
    let mut parser = ReplyParser::new(ReplyLimits::default());
    let mut count = 0;
    for piece in replies.chunks(READ_BYTES) {
        parser.push(piece);
        while let Some(value) = parser.value()? {
            black_box(value);
            count += 1;
        }
    }
    Ok(count)
}
