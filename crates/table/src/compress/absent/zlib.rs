//! In the place of zlib where it is left out: [`super::Codec::check_built`] refuses before anything asks here.

#[derive(Default)]
pub(super) struct Contexts;

impl Contexts {
    pub(super) fn compress(&mut self, _: Option<i32>, _: &[u8], _: &mut [u8]) -> Option<usize> {
        None
    }

    pub(super) fn decompress(&mut self, _: &[u8], _: &[u8], _: usize) -> Option<Vec<u8>> {
        None
    }
}
