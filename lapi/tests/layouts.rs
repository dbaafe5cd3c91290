//! Gather/scatter programs and operations by address, between the tasks of jobs.

mod common;

use common::{code, is_task, job, passed, prepare};
use lapi::{Context, Dgsp, DgspBuilder, Operation, codes};
use openlapi_tests::compile;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// Columns of a matrix go to rows of another.
#[test]
fn a_layout_is_gathered_and_another_scattered_to() {
    job("a_layout_is_gathered_and_another_scattered_to", &[1, 3], |context| {
        const ROWS: usize = 200;
        const COLUMNS: usize = 30;
        let (me, tasks) = (context.task(), context.tasks());
        // An item is a row of the matrix, of which the columns 2 and 3 move.
        let columns = Dgsp::builder().blocks(&[(2 * 8, 16)]).build(COLUMNS * 8).unwrap();
        // An item is a place in both of two rows.
        let rows = Dgsp::builder().copy(0, 8).copy(ROWS * 8, 8).build(8).unwrap();
        assert_eq!((columns.size(), rows.size(), rows.extent()), (16, 16, 8));
        let (sender, received) = mpsc::channel();
        let scattered_to = rows.clone();
        context
            .on_message(1, move |_, arrival| {
                let sender = sender.clone();
                // One place too few is refused before anything is written.
                if arrival.len > 0 {
                    let small = arrival.scatter(&scattered_to, vec![0u64; 2 * ROWS - 1], |_, _| ());
                    assert_eq!(small.err().map(|error| error.code), Some(codes::LAPI_ERR_OFFSET_LEN));
                }
                arrival
                    .scatter(&scattered_to, vec![7u64; 2 * ROWS + 1], move |_, data| {
                        sender.send(data).unwrap()
                    })
                    .unwrap()
            })
            .unwrap();
        context.gfence().unwrap();
        let matrix: Vec<u64> =
            (0..ROWS * COLUMNS).map(|number| (number as u64) << 8 | u64::from(me)).collect();
        let next = (me + 1) % tasks;
        let refused = context.send_gathered(next, 1, &[], &columns, ROWS + 1, &matrix);
        assert_eq!(code(refused), codes::LAPI_ERR_OFFSET_LEN);
        assert_eq!(
            code(context.send_gathered(next, 64, &[], &columns, 1, &matrix)),
            codes::LAPI_ERR_ADDR_HNDL_RANGE
        );
        context.send_gathered(next, 1, &[], &columns, ROWS, &matrix).unwrap();
        let data = received.recv_timeout(Duration::from_secs(20)).unwrap();
        let before = u64::from((me + tasks - 1) % tasks);
        for row in 0..ROWS {
            for column in 0..2 {
                let expected = ((row * COLUMNS + 2 + column) as u64) << 8 | before;
                assert_eq!(data[column * ROWS + row], expected, "row {row}, column {column}");
            }
        }
        assert_eq!(data[2 * ROWS], 7);
        context.send_gathered(next, 1, &[], &columns, 0, &matrix).unwrap();
        let untouched = received.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(untouched == vec![7; 2 * ROWS + 1]);
        context.gfence().unwrap();
    });
}

/// The bytes that a program moves, found without it.
#[derive(Default)]
struct Model(Vec<usize>);

/// A program and its model, from random numbers. `None`: it would move more than is tried.
fn random(rng: &mut fastrand::Rng, depth: usize) -> (DgspBuilder, Model) {
    let (mut builder, mut model) = (Dgsp::builder(), Model::default());
    for _ in 0..rng.usize(0..4) {
        match rng.usize(0..if depth > 0 { 3 } else { 2 }) {
            0 => {
                let (offset, len) = (rng.usize(0..100), rng.usize(0..20));
                builder = builder.copy(offset, len);
                model.0.extend(offset..offset + len);
            }
            1 => {
                let blocks: Vec<_> =
                    (0..rng.usize(0..4)).map(|_| (rng.usize(0..100), rng.usize(0..9))).collect();
                builder = builder.blocks(&blocks);
                model.0.extend(blocks.iter().flat_map(|&(offset, len)| offset..offset + len));
            }
            _ => {
                let (inner, bytes) = random(rng, depth - 1);
                let (times, stride) = (rng.usize(0..4), rng.isize(-30..30));
                // So that nothing is before the item.
                let offset = rng.isize(0..50) + if stride < 0 { -stride * times as isize } else { 0 };
                builder = builder.repeat(times, offset, stride, |_| inner);
                for time in 0..times as isize {
                    model.0.extend(
                        bytes.0.iter().map(|byte| (*byte as isize + offset + time * stride) as usize),
                    );
                }
            }
        }
    }
    (builder, model)
}

#[test]
fn any_program_moves_the_bytes_that_it_describes() {
    job("any_program_moves_the_bytes_that_it_describes", &[1], |context| {
        let given = std::env::var("SEED").ok().map(|seed| seed.parse().expect("SEED is a number"));
        for seed in given.map_or(0..3_000, |seed: u64| seed..seed + 1) {
            println!("SEED={seed}");
            let mut rng = fastrand::Rng::with_seed(seed);
            let (builder, model) = random(&mut rng, 3);
            let (extent, items) = (rng.usize(0..200), rng.usize(0..4));
            let program = builder.build(extent).unwrap();
            let end = model.0.iter().max().map_or(0, |last| last + 1);
            let span = if items == 0 { 0 } else { (items - 1) * extent + end };
            assert_eq!((program.size(), program.span(items)), (model.0.len(), Some(span)));
            let places = || (0..items).flat_map(|item| model.0.iter().map(move |byte| item * extent + byte));
            let memory: Vec<u8> = (0..span).map(|_| rng.u8(..)).collect();
            let packed = context.pack(&program, items, &memory).unwrap();
            assert!(packed.iter().copied().eq(places().map(|place| memory[place])));
            let (mut into, mut expected) = (vec![0u8; span], vec![0u8; span]);
            context.unpack(&program, &packed, &mut into).unwrap();
            places().zip(&packed).for_each(|(place, byte)| expected[place] = *byte);
            assert_eq!(into, expected);
            if span > 0 {
                assert_eq!(code(context.pack(&program, items, &memory[1..])), codes::LAPI_ERR_OFFSET_LEN);
                if !packed.is_empty() {
                    assert_eq!(
                        code(context.unpack(&program, &packed, &mut into[1..])),
                        codes::LAPI_ERR_OFFSET_LEN
                    );
                }
            }
        }
    });
}

#[test]
fn programs_that_cannot_be_are_refused() {
    let refused = |builder: DgspBuilder, extent: usize| builder.build(extent).expect_err("refused").code;
    let before = Dgsp::builder().repeat(3, 0, -8, |body| body.copy(0, 8));
    assert_eq!(refused(before, 0), codes::LAPI_ERR_DGSP_OTHER);
    assert_eq!(refused(Dgsp::builder().copy(usize::MAX, 1), 0), codes::LAPI_ERR_DGSP_OTHER);
    assert_eq!(refused(Dgsp::builder().copy(0, 1), usize::MAX), codes::LAPI_ERR_DGSP_OTHER);
    let endless =
        (0..30).fold(Dgsp::builder().copy(0, 1), |inner, _| Dgsp::builder().repeat(1 << 20, 0, 0, |_| inner));
    assert_eq!(refused(endless, 0), codes::LAPI_ERR_DGSP_OTHER);
    // It moves nothing, from wherever.
    let nothing = Dgsp::builder().copy(50, 0).repeat(0, -9, 1, |body| body.copy(0, 1)).build(3).unwrap();
    assert_eq!((nothing.size(), nothing.span(9)), (0, Some(24)));
}

/// What a program gathers is not more than memory has, whatever it is asked for.
#[test]
fn huge_numbers_of_items_are_refused() {
    job("huge_numbers_of_items_are_refused", &[1], |context| {
        let same = Dgsp::builder().copy(0, 8).build(0).unwrap();
        let data = [1u64];
        assert_eq!(same.span(usize::MAX), Some(8));
        assert_eq!(code(context.pack(&same, usize::MAX, &data)), codes::LAPI_ERR_OFFSET_LEN);
        assert_eq!(context.pack(&same, 2, &data).unwrap().len(), 16);
        assert_eq!(code(context.pack(&same, 1 << 58, &data)), codes::LAPI_ERR_MEMORY_EXHAUSTED);
        let wide = Dgsp::builder().copy(0, 1).build(isize::MAX as usize).unwrap();
        assert_eq!((wide.span(3), wide.span(4)), (Some(usize::MAX), None));
        assert_eq!(code(context.send_gathered(0, 1, &[], &wide, 4, &data)), codes::LAPI_ERR_OFFSET_LEN);
    });
}

#[test]
fn operations_by_address() {
    job("operations_by_address", &[2], |context: Context| {
        let other = 1 - context.task();
        let memory = Box::leak(Box::new([0u64; 1000]));
        let addresses = context.exchange(memory.as_ptr() as u64).unwrap();
        let there = addresses[other as usize];
        let data = vec![u64::from(context.task()) + 5; 999];
        // SAFETY: the other task has 1,000 numbers there, and accesses them after the fence alone.
        unsafe { context.put_at(other, there + 8, &data).unwrap() };
        context.gfence().unwrap();
        let mut back = vec![0u64; 1000];
        // SAFETY: nothing writes there any more.
        unsafe { context.get_at(other, there, &mut back).unwrap() };
        assert!(back[0] == 0 && back[1..] == data);
        context.gfence().unwrap();
        // SAFETY: it is a number there.
        unsafe {
            assert_eq!(context.change_at(Operation::Add, other, there, [3u64, 0]).unwrap(), 0);
            assert_eq!(context.change_at(Operation::CompareAndSwap, other, there, [3u64, 9]).unwrap(), 1);
            assert_eq!(context.change_at(Operation::Swap, other, there, [1u64, 0]).unwrap(), 9);
            assert_eq!(context.change_at(Operation::Or, other, there, [6u64, 0]).unwrap(), 1);
        }
        context.gfence().unwrap();
        assert_eq!(memory[0], 7);
    });
}

#[test]
fn tasks_in_c_and_in_rust_tell_each_other_addresses() {
    const LEN: usize = 1000;
    const NAME: &str = "tasks_in_c_and_in_rust_tell_each_other_addresses";
    const PROGRAM: &str = "PROGRAM_IN_C";
    if is_task() {
        if std::env::var("MP_CHILD").as_deref() == Ok("0") {
            let program = std::env::var_os(PROGRAM).expect("the test has named it");
            panic!("it cannot be run: {}", Command::new(program).exec());
        }
        let context = Context::open().unwrap();
        let memory = Box::leak(Box::new([0u64; LEN]));
        let addresses = context.exchange(memory.as_ptr() as u64).unwrap();
        let data: Vec<u64> = (0..LEN as u64).map(|at| at << 32 | 1).collect();
        // SAFETY: task 0 has as many numbers there, and reads them after the fence.
        unsafe { context.put_at(0, addresses[0], &data).unwrap() };
        context.gfence().unwrap();
        assert!(memory.iter().enumerate().all(|(at, number)| *number == (at as u64) << 32));
        return context.gfence().unwrap();
    }
    let program = compile("address-rust", &["tests/c/address/rust.c", "tests/c/common/ltest.c"], &[]);
    let outcome = prepare(NAME, 2).env(PROGRAM, program).run();
    passed(&outcome, 1);
    assert!(outcome.stdout.contains("PASS 0"), "{outcome}");
}
