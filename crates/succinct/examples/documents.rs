//! The codes of small BSON documents: 500,000 orders of seven fields, as the document server stores them.
//!
//! `cargo run --release -p drumlin-succinct --example documents [ORDERS]`
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::sync::Arc;
use std::time::Instant;

use drumlin_base::rng::Rng;
use drumlin_succinct::{Effort, Encoder, Model};

const STATES: [&str; 6] = [
    "new",
    "paid",
    "shipped",
    "delivered",
    "returned",
    "cancelled",
];
const CITIES: [&str; 8] = [
    "Berlin", "Paris", "London", "Madrid", "Rome", "Wien", "Prague", "Oslo",
];

/// Builds a document, element by element.
#[derive(Default)]
struct Builder(Vec<u8>);

impl Builder {
    fn element(mut self, bson: u8, name: &str, value: &[u8]) -> Self {
        self.0.push(bson);
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        self.0.extend_from_slice(value);
        self
    }

    fn text(self, name: &str, text: &str) -> Self {
        let value = [
            &(text.len() as u32 + 1).to_le_bytes(),
            text.as_bytes(),
            &[0],
        ]
        .concat();
        self.element(0x02, name, &value)
    }

    fn int(self, name: &str, number: u64) -> Self {
        self.element(0x10, name, &(number as i32).to_le_bytes())
    }

    fn document(self) -> Vec<u8> {
        [
            &(self.0.len() as u32 + 5).to_le_bytes(),
            self.0.as_slice(),
            &[0],
        ]
        .concat()
    }
}

/// An order without its `_id`, behind the byte that says so.
fn order(rng: &mut Rng, at: &mut i64) -> Vec<u8> {
    *at += rng.below(60) as i64;
    let item = |rng: &mut Rng| {
        let sku = format!("SKU-{:06}", rng.below(50_000));
        let item = Builder::default().text("sku", &sku);
        item.int("n", 1 + rng.below(4)).document()
    };
    let total = rng.below(50_000) as f64 / 100.0;
    let fields = Builder::default()
        .int("customer", rng.below(200_000))
        .text("status", STATES[rng.below(6) as usize])
        .element(0x09, "placed", &(*at * 1000).to_le_bytes())
        .element(0x01, "total", &total.to_le_bytes())
        .text("city", CITIES[rng.below(8) as usize]);
    let items = Builder::default().element(0x03, "0", &item(rng));
    let items = items.element(0x03, "1", &item(rng)).document();
    let elements = fields.element(0x04, "items", &items).0;
    [&[0x41], elements.as_slice(), &[0]].concat()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args()
        .nth(1)
        .map_or(Ok(500_000), |text| text.parse())?;
    let (mut rng, mut at) = (Rng::new(1), 1_700_000_000);
    let orders: Vec<Vec<u8>> = (0..count).map(|_| order(&mut rng, &mut at)).collect();
    let bytes: usize = orders.iter().map(Vec::len).sum();
    let sample: Vec<&[u8]> = orders.iter().step_by(10).map(Vec::as_slice).collect();
    println!(
        "{count} orders of {:.1} bytes",
        bytes as f64 / orders.len() as f64
    );
    for effort in [Effort::Fast, Effort::Small] {
        let begin = Instant::now();
        let model = Arc::new(Model::train(&sample, effort));
        let trained = begin.elapsed();
        let mut encoder = Encoder::new(Arc::clone(&model));
        let begin = Instant::now();
        let (mut codes, mut ends) = (Vec::new(), Vec::new());
        for order in &orders {
            encoder.encode(order, &mut codes);
            ends.push(codes.len());
        }
        let encoding = begin.elapsed().as_nanos() / orders.len() as u128;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let (begin, mut back) = (Instant::now(), Vec::new());
        for ((from, to), order) in starts.zip(ends.iter().copied()).zip(&orders) {
            back.clear();
            model.decode(codes.get(from..to).unwrap_or_default(), &mut back)?;
            assert_eq!(&back, order);
        }
        let decoding = begin.elapsed().as_nanos() / orders.len() as u128;
        println!(
            "{effort:?}: {:.2} bytes an order, the model {} bytes; raw {}; trained in {trained:.1?}, encoded in {encoding} ns each, \
             decoded in {decoding}\n{}",
            codes.len() as f64 / orders.len() as f64,
            model.to_bytes().len(),
            encoder.counts().raw,
            model.describe()
        );
    }
    Ok(())
}
