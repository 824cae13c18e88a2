//! What a C program holds: a pointer to a value with a word in front that says which type it is.
//!
//! Destroying a handle drops its value and overwrites the word. The memory is given back when a thousand later handles
//! are destroyed, so that a use of a destroyed handle is seen, mostly, instead of reading somebody else's memory.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::{Mutex, PoisonError};

use crate::error::end_process;

/// A value that C programs hold handles of.
pub trait Tagged {
    /// Says which type it is. No two types have the same.
    const TAG: u64;
    /// The type, as the header names it.
    const NAME: &'static str;
}

/// What a handle points to.
#[derive(Debug)]
#[repr(C)]
pub struct Handle<T> {
    tag: u64,
    value: ManuallyDrop<T>,
}

const DESTROYED: u64 = 0x6465_7374_726f_7921;
const KEPT_MAX: usize = 1024;

/// Memory of handles that were destroyed, oldest first.
static KEPT: Mutex<VecDeque<Kept>> = Mutex::new(VecDeque::new());

struct Kept {
    memory: *mut c_void,
}

// SAFETY: the memory is that of a destroyed handle, whose value is gone; it is given back once.
unsafe impl Send for Kept {}

/// A new handle of `value`, which the C program destroys. Its memory is malloc's: some handles are given back with `free`, without
/// their values.
pub fn create<T: Tagged>(value: T) -> *mut Handle<T> {
    const { assert!(align_of::<Handle<T>>() <= align_of::<libc::max_align_t>()) };
    // SAFETY: malloc has no conditions.
    let handle: *mut Handle<T> = unsafe { libc::malloc(size_of::<Handle<T>>()) }.cast();
    if handle.is_null() {
        end_process("malloc", "no memory is left for a handle");
    }
    let value = Handle {
        tag: T::TAG,
        value: ManuallyDrop::new(value),
    };
    // SAFETY: it is new, and large and aligned enough.
    unsafe { handle.write(value) };
    handle
}

/// The value of `handle`. Ends the process where it is none of this type.
///
/// # Safety
/// `handle` is null, or came from [`create`] and is not destroyed by another thread meanwhile.
pub unsafe fn get<'a, T: Tagged>(handle: *const Handle<T>, function: &str) -> &'a T {
    check(handle, function);
    // SAFETY: it is not null and its tag is right, so it came from `create` and is not destroyed.
    let handle = unsafe { &*handle };
    &handle.value
}

/// The value of `handle`, to be changed.
///
/// # Safety
/// As [`get`]; and no other thread uses the handle meanwhile.
pub unsafe fn get_mut<'a, T: Tagged>(handle: *mut Handle<T>, function: &str) -> &'a mut T {
    check(handle, function);
    // SAFETY: as in `get`, and the caller keeps other uses away.
    let handle = unsafe { &mut *handle };
    &mut handle.value
}

/// Destroys `handle`: drops its value.
///
/// # Safety
/// As [`get_mut`].
pub unsafe fn destroy<T: Tagged>(handle: *mut Handle<T>, function: &str) {
    check(handle, function);
    // SAFETY: as in `get_mut`.
    let held = unsafe { &mut *handle };
    held.tag = DESTROYED;
    // SAFETY: the tag says from here on that the value is gone, so it is dropped once.
    unsafe { ManuallyDrop::drop(&mut held.value) };
    keep(Kept {
        memory: handle.cast(),
    });
}

/// Destroys `handle` and gives its value, for functions that take an object over.
///
/// # Safety
/// As [`get_mut`].
pub unsafe fn take<T: Tagged>(handle: *mut Handle<T>, function: &str) -> T {
    check(handle, function);
    // SAFETY: as in `get_mut`.
    let held = unsafe { &mut *handle };
    held.tag = DESTROYED;
    // SAFETY: the tag says from here on that the value is gone, so it is taken once.
    let value = unsafe { ManuallyDrop::take(&mut held.value) };
    keep(Kept {
        memory: handle.cast(),
    });
    value
}

fn keep(kept: Kept) {
    let mut list = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    list.push_back(kept);
    if list.len() > KEPT_MAX
        && let Some(oldest) = list.pop_front()
    {
        // SAFETY: it came from malloc in `create`, and is out of the list, so this is the one call for it.
        unsafe { libc::free(oldest.memory) };
    }
}

fn check<T: Tagged>(handle: *const Handle<T>, function: &str) {
    if handle.is_null() {
        end_process(function, &format!("the {} is null", T::NAME));
    }
    // SAFETY: the caller says it is a handle; the memory of destroyed ones is kept for a while.
    match unsafe { (*handle).tag } {
        tag if tag == T::TAG => {}
        DESTROYED => end_process(function, &format!("the {} was destroyed", T::NAME)),
        _ => end_process(function, &format!("this is no {}", T::NAME)),
    }
}
