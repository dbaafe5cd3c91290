//! Regions, items and backups.

use super::facts::Facts;
use super::start::kept;
use super::{code, context, give, name, text};
use crate::client::{Context, Item, Purpose, Wait};
use crate::error::{FamError, Result};
use crate::wire::{Answer, Ask, Attributes, LONGEST_NAME};
use libc::{c_char, c_int};
use std::ffi::CString;

/// A name of a region, an item or a backup.
///
/// # Errors
/// [`FamError::Invalid`], [`FamError::NameTooLong`].
///
/// # Safety
/// It is NULL, or ends by 0.
unsafe fn short(given: *const c_char, what: &str) -> Result<String> {
    // SAFETY: the caller's promise.
    let name = unsafe { name(given, what)? };
    match name.len() {
        0..=LONGEST_NAME => Ok(name),
        length => {
            Err(FamError::NameTooLong.because(format!("{what} has {length} bytes; at most {LONGEST_NAME}")))
        }
    }
}

/// The first context, and what the keeper answers.
///
/// # Safety
/// The context was made by this library.
unsafe fn asked(of: *mut Context, ask: &Ask) -> Result<Facts> {
    // SAFETY: the caller's promise.
    match unsafe { context(of)? }.control()?.ask(ask)? {
        Answer::Region(facts) => Ok(Facts::from(&facts)),
        Answer::Item(facts) => Ok(Facts::from(&facts)),
        _ => Err(FamError::Rpc.because("the daemon has answered something else than what was asked")),
    }
}

/// Something without an answer of its own.
///
/// # Safety
/// The context was made by this library.
unsafe fn order(of: *mut Context, ask: &Ask) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { context(of) }.and_then(Context::control).and_then(|client| client.order(ask)))
}

/// The item behind a descriptor.
///
/// # Safety
/// It is NULL, or was made by [`olfam_item_new`] and not freed since.
pub(super) unsafe fn item<'a>(item: *const Item) -> Result<&'a Item> {
    // SAFETY: the caller's promise.
    unsafe { item.as_ref() }.ok_or_else(|| FamError::Invalid.because("the descriptor is NULL"))
}

/// Makes a region; see fam_create_region(3).
///
/// # Safety
/// The pointers are NULL or valid; of `attributes` four numbers. `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_region_create(
    of: *mut Context,
    region: *const c_char,
    size: u64,
    perm: u32,
    attributes: *const [u32; 4],
    out: *mut Facts,
) -> c_int {
    let make = || {
        // SAFETY: the caller's promise.
        let (context, name) = unsafe { (context(of)?, short(region, "the region's name")?) };
        // SAFETY: the caller's promise.
        let [redundancy, memory, interleave, permission] =
            unsafe { attributes.as_ref() }.copied().unwrap_or_default();
        let memory = if memory == 0 { context.control()?.options.memory } else { memory };
        let attributes = Attributes { redundancy, memory, interleave, permission };
        let ask = Ask::CreateRegion { name, size, mode: perm, attributes };
        // SAFETY: the caller's promise.
        unsafe { asked(of, &ask) }
    };
    // SAFETY: the caller's place.
    unsafe { give(make(), out) }
}

/// Finds a region; see fam_lookup_region(3).
///
/// # Safety
/// The pointers are NULL or valid; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_region_lookup(
    of: *mut Context,
    region: *const c_char,
    out: *mut Facts,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let name = short(region, "the region's name");
        give(name.and_then(|name| asked(of, &Ask::LookupRegion { name })), out)
    }
}

/// Ends a region; see fam_destroy_region(3).
///
/// # Safety
/// The context was made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_region_destroy(of: *mut Context, region: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { order(of, &Ask::DestroyRegion { region }) }
}

/// Changes the size of a region; see fam_resize_region(3).
///
/// # Safety
/// The context was made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_region_resize(of: *mut Context, region: u64, size: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { order(of, &Ask::ResizeRegion { region, size }) }
}

/// Changes the rights of a region; see fam_change_permissions(3).
///
/// # Safety
/// The context was made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_region_protect(of: *mut Context, region: u64, perm: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { order(of, &Ask::RegionRights { region, mode: perm }) }
}

/// What is known of a region; see fam_stat(3).
///
/// # Safety
/// The context was made by this library; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_region_stat(of: *mut Context, region: u64, out: *mut Facts) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { give(asked(of, &Ask::StatRegion { region }), out) }
}

/// An item of this global descriptor, which is opened at its first use.
#[unsafe(no_mangle)]
pub extern "C" fn olfam_item_new(region: u64, offset: u64) -> *mut Item {
    Box::into_raw(Box::new(Item::new(region, offset)))
}

/// Frees an item.
///
/// # Safety
/// It was made by [`olfam_item_new`], and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_item_free(freed: *mut Item) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(freed) });
}

/// What was known of an item when it was opened last; 0: it was not.
///
/// # Safety
/// The item was made by [`olfam_item_new`]; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_item_facts(of: *const Item, out: *mut Facts) -> c_int {
    // SAFETY: the caller's promise.
    let Some(facts) = unsafe { item(of) }.ok().and_then(Item::facts) else { return 0 };
    // SAFETY: the caller's place.
    unsafe { out.write(Facts::from(&facts)) };
    1
}

/// Makes an item; see fam_allocate(3).
///
/// # Safety
/// The pointers are NULL or valid; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_item_allocate(
    of: *mut Context,
    given: *const c_char,
    size: u64,
    perm: u32,
    region: u64,
    out: *mut Facts,
) -> c_int {
    let make = || {
        // SAFETY: the caller's promise.
        let name = if given.is_null() { String::new() } else { unsafe { short(given, "the item's name")? } };
        // SAFETY: the caller's promise.
        unsafe { asked(of, &Ask::Allocate { region, name, size, mode: perm }) }
    };
    // SAFETY: the caller's place.
    unsafe { give(make(), out) }
}

/// Finds an item; see fam_lookup(3).
///
/// # Safety
/// The pointers are NULL or valid; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_item_lookup(
    of: *mut Context,
    given: *const c_char,
    region: *const c_char,
    out: *mut Facts,
) -> c_int {
    let find = || {
        // SAFETY: the caller's promise.
        unsafe {
            let item = short(given, "the item's name")?;
            let region = short(region, "the region's name")?;
            asked(of, &Ask::Lookup { region, item })
        }
    };
    // SAFETY: the caller's place.
    unsafe { give(find(), out) }
}

/// Ends an item; see fam_deallocate(3).
///
/// # Safety
/// Context and item were made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_item_deallocate(of: *mut Context, freed: *mut Item) -> c_int {
    let end = || {
        // SAFETY: the caller's promise.
        let (context, item) = unsafe { (context(of)?, item(freed)?) };
        let (region, number) = item.name();
        context.control()?.order(&Ask::Deallocate { region, item: number })?;
        item.close();
        Ok(())
    };
    code(end())
}

/// The process is done with an item; see fam_close(3).
///
/// # Safety
/// Context and item were made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_item_close(of: *mut Context, closed: *mut Item) -> c_int {
    let close = || {
        // SAFETY: the caller's promise.
        let (context, item) = unsafe { (context(of)?, item(closed)?) };
        context.control()?;
        item.close();
        Ok(())
    };
    code(close())
}

/// Changes the rights of an item; see fam_change_permissions(3).
///
/// # Safety
/// Context and item were made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_item_protect(of: *mut Context, changed: *mut Item, perm: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        match item(changed).map(Item::name) {
            Ok((region, item)) => order(of, &Ask::ItemRights { region, item, mode: perm }),
            Err(failure) => code(Err(failure)),
        }
    }
}

/// What is known of an item; see fam_stat(3).
///
/// # Safety
/// Context and item were made by this library; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_item_stat(of: *mut Context, known: *mut Item, out: *mut Facts) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let name = item(known).map(Item::name);
        give(name.and_then(|(region, item)| asked(of, &Ask::StatItem { region, item })), out)
    }
}

/// Begins a copy; see fam_copy(3).
///
/// # Safety
/// Context and items were made by this library; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_copy(
    of: *mut Context,
    source: *mut Item,
    source_offset: u64,
    target: *mut Item,
    target_offset: u64,
    length: u64,
    out: *mut *mut Wait,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let begin =
            || context(of)?.copy((item(source)?, source_offset), (item(target)?, target_offset), length);
        give_wait(begin(), out)
    }
}

/// Begins a backup; see fam_backup(3).
///
/// # Safety
/// The pointers are NULL or valid; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_backup(
    of: *mut Context,
    source: *mut Item,
    backup: *const c_char,
    out: *mut *mut Wait,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let begin = || context(of)?.backup(item(source)?, short(backup, "the backup's name")?);
        give_wait(begin(), out)
    }
}

/// Begins to write a backup into an item; see fam_restore(3).
///
/// # Safety
/// The pointers are NULL or valid; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_restore(
    of: *mut Context,
    backup: *const c_char,
    target: *mut Item,
    out: *mut *mut Wait,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let begin = || context(of)?.restore(short(backup, "the backup's name")?, item(target)?);
        give_wait(begin(), out)
    }
}

/// Begins to remove a backup; see fam_delete_backup(3).
///
/// # Safety
/// The pointers are NULL or valid; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_delete_backup(
    of: *mut Context,
    backup: *const c_char,
    out: *mut *mut Wait,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let begin = || context(of)?.delete_backup(short(backup, "the backup's name")?);
        give_wait(begin(), out)
    }
}

/// # Safety
/// `out` may be written.
unsafe fn give_wait(wait: Result<Wait>, out: *mut *mut Wait) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { give(wait.map(|wait| Box::into_raw(Box::new(wait))), out) }
}

/// Waits for a copy (`kind` 0), a backup (1), a restore (2) or the end of a backup (3), and frees
/// what it has waited for; but not what is of another kind.
///
/// # Safety
/// The context was made by this library; so was `wait`, if it is not NULL, and nothing has waited
/// for it yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_wait_for(of: *mut Context, wait: *mut Wait, kind: c_int) -> c_int {
    let finish = || {
        // SAFETY: the caller's promise.
        unsafe { context(of)? };
        if wait.is_null() {
            return Err(FamError::Invalid.because("there is nothing to wait for: NULL"));
        }
        let purpose = match kind {
            0 => Purpose::Copy,
            1 => Purpose::Backup,
            2 => Purpose::Restore,
            _ => Purpose::Delete,
        };
        // SAFETY: the caller's promise.
        unsafe { (*wait).check(purpose)? };
        // SAFETY: the caller's promise.
        unsafe { Box::from_raw(wait) }.finish()
    };
    code(finish())
}

/// Bytes of the item that a backup was made of.
///
/// # Safety
/// The pointers are NULL or valid; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_backup_size(of: *mut Context, backup: *const c_char, out: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let size = || context(of)?.backup_size(short(backup, "the backup's name")?);
        give(size(), out)
    }
}

/// The backups of a name; see fam_list_backup(3).
///
/// # Safety
/// The pointers are NULL or valid; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_list_backup(
    of: *mut Context,
    backup: *const c_char,
    out: *mut *mut c_char,
) -> c_int {
    let list = || {
        // SAFETY: the caller's promise.
        let (context, name) = unsafe { (context(of)?, text(backup, "the backup's name")?) };
        let name = name.ok_or_else(|| FamError::Invalid.because("the backup's name is NULL"))?;
        let list = context.list_backups(name.to_owned())?;
        Ok(kept(CString::new(list).unwrap_or_default().as_bytes_with_nul())?.cast())
    };
    // SAFETY: the caller's place.
    unsafe { give(list(), out) }
}
