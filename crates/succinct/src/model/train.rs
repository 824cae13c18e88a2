//! Choosing a model for a sample.
//!
//! Each plan (records as whole texts, or split by the shapes the sample has) is carried out on most of
//! the sample and judged on the rest: by the bytes of its codes and by the cost of reading them. A
//! plan that saves too little is not worth a model at all.

use super::build::Builder;
use super::encode::Encoder;
use super::store::Model;
use crate::documents::Spelled;
use crate::template::{COLUMNS_MAX, Layout, frequent, skeletons};
use std::sync::Arc;

/// One record in so many is not learned from but judged by.
const JUDGED_SHARE: usize = 8;
/// Records judged by at most.
const JUDGED_MAX: usize = 4000;
/// Records that shapes are looked for in.
const SHAPE_RECORDS: usize = 4000;
/// Records that are looked at to tell whether the sample is one of documents, and how many in a hundred must be.
const DOCUMENTS_TRIED: usize = 100;
const DOCUMENTS_PERCENT_MIN: usize = 99;
/// Records must be larger than their codes by this factor in percent, or a model for them as they are is tried, too.
const SMALL_PERCENT: u64 = 200;
/// Codes must be smaller than records by this factor in percent, or there is no model.
const GAIN_PERCENT_MIN: u64 = 115;

/// The aim of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Codes that are cheap to make and to read, for records that will soon be written again.
    Fast,
    /// The smallest codes that are still read in about a microsecond.
    Small,
}

impl Model {
    /// The model that suits `sample`, records taken from across the data. The same sample gives the
    /// same model.
    ///
    /// Costs about a second and a half for the first 8 MiB of the sample, more for text with many different
    /// words. Beyond 8 MiB the sample is searched only for text that records share literally, at about 100
    /// MB/s, with memory of up to three times the sample.
    ///
    /// BSON documents, if nearly all of the sample are, are learned as [texts](crate::documents), which takes memory for the
    /// texts.
    pub fn train(sample: &[&[u8]], effort: Effort) -> Self {
        let Some(documents) = Self::of_documents(sample, effort) else {
            return Self::of_records(sample, effort);
        };
        let (bytes, size) = (judge(&documents, sample), bytes_of(sample));
        let is_small = bytes * SMALL_PERCENT < size * 100;
        let records = (!is_small).then(|| Arc::new(Self::of_records(sample, effort)));
        let better = records.filter(|records| judge(records, sample) < bytes);
        let model = better.unwrap_or(documents);
        Arc::into_inner(model).expect("encoders hold it, and all of them are dropped")
    }

    /// A model for the texts of documents, if it is worth it.
    fn of_documents(sample: &[&[u8]], effort: Effort) -> Option<Arc<Self>> {
        let mut spelled = Spelled::default();
        let rough_step = sample.len().div_ceil(DOCUMENTS_TRIED).max(1);
        let rough = sample.iter().step_by(rough_step);
        let are_documents =
            |records: usize, all: usize| records * 100 >= all * DOCUMENTS_PERCENT_MIN;
        let tried = rough.clone().filter(|record| spelled.spell(record)).count();
        (tried > 0 && are_documents(tried, rough.len())).then_some(())?;
        let (mut documents, mut texts, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
        let shape_step = sample.len().div_ceil(SHAPE_RECORDS).max(1);
        for (index, &record) in sample.iter().enumerate() {
            if spelled.spell(record) {
                documents.push(record);
                texts.push(spelled.text().to_vec());
                shapes.extend(
                    (index % shape_step == 0)
                        .then(|| spelled.shape(COLUMNS_MAX))
                        .flatten(),
                );
            }
        }
        are_documents(documents.len(), sample.len()).then_some(())?;
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let (learned, judged) = divide(&texts);
        let shapes = frequent(shapes.into_iter(), sample.len().div_ceil(shape_step));
        let model = Builder::new(&learned, &judged, effort).build(&shapes, None);
        let model = Arc::new(model.with_documents());
        let (_, judged) = divide(&documents);
        let worth = judge(&model, &judged) * GAIN_PERCENT_MIN < bytes_of(&judged) * 100;
        worth.then_some(model)
    }

    /// The best model for records as they are.
    fn of_records(sample: &[&[u8]], effort: Effort) -> Self {
        let (learned, judged) = divide(sample);
        if learned.is_empty() {
            return Self::raw();
        }
        let step = learned.len().div_ceil(SHAPE_RECORDS);
        let shapes = skeletons(&learned.iter().step_by(step).copied().collect::<Vec<_>>());
        let size = bytes_of(&judged);
        let mut best: Option<(u64, Self)> = None;
        // By its shapes or as structs, then as whole texts, which is not tried if columns have types.
        let layout = shapes.is_empty().then(|| Layout::learn(&learned)).flatten();
        let shapeless = usize::from(shapes.is_empty() && layout.is_none());
        let plans = [(&shapes[..], layout), (&[], None)];
        for (shapes, layout) in plans.into_iter().skip(shapeless) {
            let builder = Builder::new(&learned, &judged, effort);
            let model = Arc::new(builder.build(shapes, layout));
            let bytes = judge(&model, &judged);
            let worth = bytes * GAIN_PERCENT_MIN < size * 100;
            let better = best.as_ref().is_none_or(|(least, _)| bytes < *least);
            if let Some(model) = Arc::into_inner(model).filter(|_| worth && better) {
                let typed = model.is_typed();
                best = Some((bytes, model));
                if typed {
                    break;
                }
            }
        }
        best.map_or_else(Self::raw, |(_, model)| model)
    }
}

fn bytes_of(records: &[&[u8]]) -> u64 {
    records.iter().map(|record| record.len() as u64).sum()
}

/// The records to learn from, and those to judge by.
fn divide<'s>(sample: &[&'s [u8]]) -> (Vec<&'s [u8]>, Vec<&'s [u8]>) {
    let share = sample.len().div_ceil(JUDGED_MAX).max(JUDGED_SHARE);
    let (mut learned, mut judged) = (Vec::new(), Vec::new());
    for (index, &record) in sample.iter().enumerate() {
        if index % share == share - 1 {
            judged.push(record);
        } else {
            learned.push(record);
        }
    }
    if judged.is_empty() {
        judged.clone_from(&learned);
    }
    (learned, judged)
}

/// Bytes of the codes of `records`.
fn judge(model: &Arc<Model>, records: &[&[u8]]) -> u64 {
    let mut encoder = Encoder::new(Arc::clone(model));
    let (mut code, mut bytes) = (Vec::new(), 0);
    for record in records {
        code.clear();
        encoder.encode(record, &mut code);
        bytes += code.len() as u64;
    }
    bytes
}
