//! The bytes that the keys of an index take, and would take encoded otherwise, in lines for people.

use super::BLOCK_KEYS;
use super::builder::{COLUMNS_NS, STRINGS_NS, own_bytes};
use super::index::{BlockPlan, KeyIndex};
use super::letters::Letters;
use super::run::KeyRun;
use super::strings;

/// Blocks that are encoded again for the comparison, taken from the whole range.
const COMPARED_BLOCKS: usize = 64;

/// Bytes of some keys.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    blocks: usize,
    keys: usize,
    bytes: usize,
}

impl Taken {
    fn add(&mut self, keys: usize, bytes: usize) {
        self.blocks += 1;
        self.keys += keys;
        self.bytes += bytes;
    }

    fn each(self) -> f64 {
        self.bytes as f64 / self.keys.max(1) as f64
    }
}

impl KeyIndex {
    /// The bytes of the keys: one line for each encoding in use, one for the size of the columns among
    /// them as texts, and one for memory. Cost: decodes some blocks.
    pub fn describe(&self) -> Vec<String> {
        let blocks = &self.blocks;
        let mut taken = vec![Taken::default(); blocks.plans.len()];
        for block in 0..blocks.count() {
            if let Some(place) = taken.get_mut(self.plan_of(block)) {
                place.add(self.keys_of(block), self.bytes_of(block));
            }
        }
        let used = blocks.plans.iter().zip(&taken);
        let used = used.filter(|(_, taken)| taken.blocks > 0);
        let mut lines: Vec<String> = used.map(|(plan, taken)| line(plan, *taken)).collect();
        lines.extend(self.otherwise());
        let (keys, memory) = (self.len().max(1) as f64, self.memory());
        lines.push(format!(
            "{memory} bytes in memory, {:.2} a key; {} of them lead from a key to its block",
            memory as f64 / keys,
            self.directory.resident_bytes(),
        ));
        lines
    }

    /// The bytes that some of the blocks of columns would take as texts.
    fn otherwise(&self) -> Option<String> {
        let is_columns = |block: &usize| {
            let plan = self.blocks.plans.get(self.plan_of(*block));
            matches!(plan, Some(BlockPlan::Columns(_)))
        };
        let columns: Vec<usize> = (0..self.blocks.count()).filter(is_columns).collect();
        let step = columns.len().div_ceil(COMPARED_BLOCKS).max(1);
        let (mut now, mut otherwise) = (Taken::default(), Taken::default());
        let (mut run, mut out) = (KeyRun::default(), Vec::new());
        for block in columns.into_iter().step_by(step) {
            if !self.decode_block(block, &mut run) {
                continue;
            }
            // Each block with the code that suits it best: texts at their best.
            let letters = Letters::of_counts(&own_bytes(&run));
            out.clear();
            strings::encode(&letters, run.range(0, run.len()), &mut out);
            now.add(run.len(), self.bytes_of(block));
            otherwise.add(run.len(), out.len());
        }
        (now.blocks > 0).then(|| {
            format!(
                "as strings {} of the blocks of columns would take {:.2} bytes a key, not {:.2}, and a lookup \
                 in a block about {STRINGS_NS:.0} ns, not {COLUMNS_NS:.0}",
                now.blocks,
                otherwise.each(),
                now.each(),
            )
        })
    }

    fn plan_of(&self, block: usize) -> usize {
        let plan = self.blocks.bytes.bytes().get(self.blocks.offset(block));
        plan.copied().map_or(0, usize::from)
    }

    fn bytes_of(&self, block: usize) -> usize {
        let (at, end) = (self.blocks.offset(block), self.blocks.offset(block + 1));
        end.saturating_sub(at)
    }

    fn keys_of(&self, block: usize) -> usize {
        let before = (block * BLOCK_KEYS) as u64;
        self.len().saturating_sub(before).min(BLOCK_KEYS as u64) as usize
    }
}

fn line(plan: &BlockPlan, taken: Taken) -> String {
    let (blocks, bytes, each) = (taken.blocks, taken.bytes, taken.each());
    match plan {
        BlockPlan::Strings(_) => {
            format!("{blocks} blocks of front-coded strings, {bytes} bytes, {each:.2} a key")
        }
        BlockPlan::Columns(template) => {
            format!("{blocks} blocks of columns {template}, {bytes} bytes, {each:.2} a key")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::KeyIndexBuilder;
    use super::*;

    #[test]
    fn the_choice_and_what_it_costs_are_told() {
        let mut builder = KeyIndexBuilder::new();
        for number in 0..20_000u64 {
            let key = format!("user|{:07}|{}", number * 3, number * 7919 % 100_000);
            builder.add(key.as_bytes()).expect("ascending keys");
        }
        let (blocks, tail) = builder.finish().expect("few keys");
        let stored = blocks.len();
        let index = KeyIndex::open(blocks, &tail).expect("its own bytes");
        let lines = index.describe();
        let text = lines.join("\n");
        assert!(text.contains("blocks of columns user|<"), "{text}");
        assert!(
            text.contains(&format!("{:.2} a key", stored as f64 / 20_000.0)),
            "{text}"
        );
        assert!(text.contains("as strings 63 of the blocks"), "{text}");
        assert!(text.contains("bytes in memory"), "{text}");
    }

    #[test]
    fn an_index_without_keys_tells_no_shares() {
        let (blocks, tail) = KeyIndexBuilder::new().finish().expect("no keys");
        let index = KeyIndex::open(blocks, &tail).expect("its own bytes");
        assert_eq!(index.describe().len(), 1);
    }
}
