//! Registers of 6 bits, one behind the other.

use super::estimate::REGISTERS;

/// Bits of a register.
const BITS: usize = 6;
/// Bytes of all registers.
pub(super) const BYTES: usize = REGISTERS * BITS / 8;
/// The highest value.
pub(super) const MAX: u8 = (1 << BITS) - 1;

/// The byte in which a register begins, and the bit in it.
fn place(index: usize) -> (usize, usize) {
    (index * BITS / 8, index * BITS % 8)
}

/// The register `index`.
pub(super) fn get(registers: &[u8], index: usize) -> u8 {
    let (at, shift) = place(index);
    let byte = |at: usize| u16::from(registers.get(at).copied().unwrap_or(0));
    let pair = byte(at) | byte(at + 1) << 8;
    (pair >> shift) as u8 & MAX
}

/// Gives the register `index` a value of up to 63.
pub(super) fn set(registers: &mut [u8], index: usize, value: u8) {
    let (at, shift) = place(index);
    let mask = (u16::from(MAX) << shift).to_le_bytes();
    let bits = (u16::from(value & MAX) << shift).to_le_bytes();
    for ((at, mask), bits) in (at..).zip(mask).zip(bits) {
        if let Some(byte) = registers.get_mut(at) {
            *byte = *byte & !mask | bits;
        }
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn registers_hold_their_values() {
        let mut rng = Rng::new(1);
        let mut registers = vec![0; BYTES];
        let mut model = vec![0; REGISTERS];
        for _ in 0..100_000 {
            let index = rng.below(REGISTERS as u64) as usize;
            let value = rng.below(64) as u8;
            set(&mut registers, index, value);
            model[index] = value;
        }
        let read: Vec<_> = (0..REGISTERS).map(|at| get(&registers, at)).collect();
        assert_eq!(read, model);
    }
}
