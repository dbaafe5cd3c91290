//! What the C compilers make of `lapi.h` and `css_shared.h`, compared with Rust: every size,
//! offset and constant.

mod c;

use openlapi::abi::*;
use std::collections::BTreeSet;
use std::mem::{MaybeUninit, offset_of};
use std::{fs, path::Path};

/// An expression in C, and the value it must have.
struct Expectation {
    c: String,
    value: i64,
}

#[test]
fn c_and_rust_agree() {
    let expected = expectations();
    let program = c_program(&expected);
    for compiler in c::compilers() {
        for (name, standard) in [("layout.c", "-std=c99"), ("layout.cpp", "-std=c++11")] {
            let executable = compiler.build(name, standard, &program);
            let output = c::command(&executable).output().expect("run what was compiled");
            assert!(output.status.success(), "{compiler} {standard}: {:?}", output.status);
            let values = String::from_utf8(output.stdout).expect("numbers");
            assert_eq!(values.lines().count(), expected.len());
            for (value, expectation) in values.lines().zip(&expected) {
                let value: i64 = value.parse().expect("a number");
                assert_eq!(value, expectation.value, "{compiler} {standard}: {}", expectation.c);
            }
        }
    }
}

/// A type or a constant that is added to Rust must be added here, and then to the prelude.
#[test]
fn the_lists_have_everything_that_rust_has() {
    let (types, constants) = (type_names(), constant_names());
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/abi")).expect("src/abi") {
        let source = fs::read_to_string(file.expect("a file").path()).expect("a source file");
        for line in source.lines() {
            let name = |rest: &str| rest.split([':', ' ', '<', '(']).next().expect("a name").to_owned();
            if let Some(rest) = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub union ")) {
                // The one structure that C does not see.
                assert!(
                    types.contains(&*name(rest)) || name(rest) == "PredefinedDgsp",
                    "type {}",
                    name(rest)
                );
            } else if let Some(rest) = line.strip_prefix("pub const ") {
                assert!(constants.contains(&*name(rest)), "constant {}", name(rest));
            }
        }
    }
}

/// A constant that is added to a header must be in Rust as well.
#[test]
fn the_lists_have_everything_that_c_has() {
    // Not numbers, or not LAPI's.
    let others = [
        "LAPI_H",
        "LAPI_CHECKPOINT_H",
        "CSS_SHARED_H",
        "CSS_SHARED_UINT",
        "__64BIT__",
        "LAPI_EITHER",
        "LAPI_ADDR_NULL",
    ];
    let constants = constant_names();
    let mut found = BTreeSet::new();
    for header in ["lapi.h", "lapi_checkpoint.h", "css_shared.h"] {
        let text = fs::read_to_string(c::include_dir().join(header)).expect("a header");
        for line in text.lines() {
            let words: Vec<&str> =
                line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '=').collect();
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            let macro_name = (words.first() == Some(&"define")).then(|| words[1]);
            // Not the field of a variable that a function of the header sets.
            let is_constant = |name: &&str| !name.contains(char::is_lowercase);
            let members =
                words.windows(2).filter(|pair| pair[1] == "=").map(|pair| pair[0]).filter(is_constant);
            for name in members.chain(macro_name) {
                assert!(constants.contains(name) || others.contains(&name), "{header}: {name}");
                found.insert(name.to_owned());
            }
        }
    }
    assert!(constants.iter().all(|name| found.contains(*name)), "a constant that no header defines");
}

fn c_program(expected: &[Expectation]) -> String {
    let mut program = String::from(
        "#include <lapi.h>\n#include <lapi_checkpoint.h>\n#include <stddef.h>\n#include <stdio.h>\n",
    );
    for name in constant_names() {
        // Old programs ask for these with #ifdef.
        if name.starts_with("LAPI_ERR_") || name.ends_with("_SIZE") && name.starts_with("LAPI_DGSM_") {
            program += &format!("#ifndef {name}\n#error {name} is no macro\n#endif\n");
        }
    }
    program += "int main(void)\n{\n";
    for Expectation { c, .. } in expected {
        program += &format!("  printf(\"%lld\\n\", (long long)({c}));\n");
    }
    program + "  return 0;\n}\n"
}

fn size_of_pointee<T>(_: *const T) -> usize {
    size_of::<T>()
}

fn expect(c: String, value: usize) -> Expectation {
    Expectation { c, value: value.try_into().expect("a small number") }
}

/// Sizes of the types, offsets and sizes of their fields.
macro_rules! types {
    ($($type:ident: $($field:ident),+;)+) => {
        fn type_names() -> BTreeSet<&'static str> {
            [$(stringify!($type)),+].into()
        }

        fn layouts() -> Vec<Expectation> {
            let mut all = Vec::new();
            $(
                let (name, place) = (stringify!($type), MaybeUninit::<$type>::uninit());
                all.push(expect(format!("sizeof({name})"), size_of::<$type>()));
                $(
                    let field = stringify!($field);
                    all.push(expect(format!("offsetof({name}, {field})"), offset_of!($type, $field)));
                    // SAFETY: the field's address is taken, within the place; nothing is read.
                    let size = size_of_pointee(unsafe { &raw const (*place.as_ptr()).$field });
                    all.push(expect(format!("sizeof((({name} *)0)->{field})"), size));
                )+
            )+
            all
        }
    };
}

macro_rules! constants {
    ($($name:ident)+) => {
        fn constant_names() -> BTreeSet<&'static str> {
            [$(stringify!($name)),+].into()
        }

        fn constants() -> Vec<Expectation> {
            vec![$(Expectation { c: stringify!($name).to_owned(), value: $name as i64 }),+]
        }
    };
}

fn expectations() -> Vec<Expectation> {
    let mut all = layouts();
    all.extend(constants());
    all.extend(plain_types());
    all.extend(second_names());
    all
}

fn plain_types() -> Vec<Expectation> {
    macro_rules! sizes {
        ($($name:ident)+) => {
            vec![$(expect(format!("sizeof({})", stringify!($name)), size_of::<$name>())),+]
        };
    }
    sizes! {
        lapi_handle_t lapi_long_t lapi_status_t lapi_msglen_t css_task_t lapi_user_cxt_t lapi_user_pvo_t lapi_rdma_tag_t
        lapi_dg_handle_t lapi_dgsp_handle_t lapi_query_t RMW_ops_t lapi_err_t lapi_lib_t lapi_dev_t css_dev_t
        lapi_vectype_t lapi_xfer_type_t lapi_util_type_t lapi_usr_fcall_t lapi_dgsm_opcode_t lapi_dgsp_density_t
        lapi_msg_state_t lapi_ret_flags_t lapi_ctl_flags_t
        lapi_mutex_lock_t lapi_mutex_unlock_t lapi_mutex_trylock_t lapi_mutex_getowner_t lapi_cond_wait_t
        lapi_cond_timedwait_t lapi_cond_signal_t lapi_cond_init_t lapi_cond_destroy_t
    }
}

/// Fields that have a second name in C.
fn second_names() -> Vec<Expectation> {
    let at = |c: &str, offset| expect(format!("offsetof({c})"), offset);
    vec![
        at("lapi_statistics_t, Tot_pkt_recv_cnt", offset_of!(lapi_statistics_t, Tot_pkt_rcv_cnt)),
        at("lapi_statistics_t, Tot_data_recv", offset_of!(lapi_statistics_t, Tot_data_rcv)),
        at("lapi_pack_dgsp_t, dgsp_handle", offset_of!(lapi_pack_dgsp_t, dgsp)),
        at("lapi_unpack_dgsp_t, dgsp_handle", offset_of!(lapi_unpack_dgsp_t, dgsp)),
        at("lapi_unpack_dgsp_t, buf", offset_of!(lapi_unpack_dgsp_t, in_buf)),
    ]
}

types! {
    lapi_info_t: protocol, lib_vers, epoch_num, num_compl_hndlr_thr, instance_no, info6, err_hndlr,
        lapi_thread_attr, adapter_name, add_info;
    lapi_extend_t: udp_hndlr, add_udp_addrs, num_udp_addr, pad, udp_ext_hndlr, add_udp_ext_addrs,
        reserve;
    lapi_udp_t: ip_addr, port_no;
    lapi_udpinfo_t: task_id, tot_num_tasks, num_tasks, instance_no, reserve;
    com_thread_info_t: thread_attr, thread_init_func, parm_ptr, extra_ptr;
    lapi_cntr_t: cntr, record;
    lapi_cntr_record_t: cntr, flags, waiter, num_dest, pad, dest_list, dest_status, reserve;
    lapi_cond_t: cond, reserve;
    lapi_return_info_t: msg_len, MAGIC, ret_flags, ctl_flags, dgsp_handle, bytes, src,
        udata_one_pkt_ptr, recv_offset_dgsp_bytes;
    lapi_sh_info_t: src, reason, reserve;
    lapi_msg_info_t: status, reserve;
    lapi_statistics_t: Tot_dup_pkt_cnt, Tot_retrans_pkt_cnt, Tot_gho_pkt_cnt, Tot_pkt_sent_cnt,
        Tot_pkt_rcv_cnt, Tot_data_sent, Tot_data_rcv, Tot_ack_send_cnt, Tot_ack_recv_cnt;
    lapi_vec_t: vec_type, num_vecs, info, len;
    lapi_lvec_t: vec_type, num_vecs, info, len;
    lapi_xfer_t: Xfer_type, Get, Am, Rmw, Put, Getv, Putv, Amv, Dgsp, HwXfer, Amx;
    lapi_get_t: Xfer_type, flags, tgt, pad, tgt_addr, org_addr, len, tgt_cntr, org_cntr, chndlr,
        cinfo;
    lapi_put_t: Xfer_type, flags, tgt, pad, tgt_addr, org_addr, len, shdlr, sinfo, tgt_cntr,
        org_cntr, cmpl_cntr;
    lapi_am_t: Xfer_type, flags, tgt, pad, hdr_hdl, uhdr_len, pad2, uhdr, udata, udata_len, shdlr,
        sinfo, tgt_cntr, org_cntr, cmpl_cntr;
    lapi_amv_t: Xfer_type, flags, tgt, pad, hdr_hdl, uhdr_len, pad2, uhdr, shdlr, sinfo, org_vec,
        tgt_cntr, org_cntr, cmpl_cntr;
    lapi_getv_t: Xfer_type, flags, tgt, pad, org_vec, tgt_vec, tgt_cntr, org_cntr, chndlr, cinfo;
    lapi_putv_t: Xfer_type, flags, tgt, pad, shdlr, sinfo, org_vec, tgt_vec, tgt_cntr, org_cntr,
        cmpl_cntr;
    lapi_rmw_t: Xfer_type, op, tgt, size, tgt_var, in_val, prev_tgt_val, org_cntr, shdlr, sinfo;
    lapi_amdgsp_t: Xfer_type, flags, tgt, pad, hdr_hdl, uhdr_len, pad2, uhdr, udata, udata_len,
        shdlr, sinfo, tgt_cntr, org_cntr, cmpl_cntr, dgsp, status;
    lapi_hwxfer_t: Xfer_type, tgt, op, rdma_tag, remote_cxt, src_pvo, tgt_pvo, src_offset,
        tgt_offset, len, org_cntr, shdlr, sinfo;
    lapi_amx_t: Xfer_type, flags, tgt, pad, hdr_hdl, uhdr_len, pad2, uhdr, udata, udata_len, shdlr,
        sinfo, tgt_cntr, org_cntr, cmpl_cntr, reserve;
    lapi_util_t: Util_type, RegDgsp, DrefDgsp, ResvDgsp, DdmFunc, Udp, PackDgsp, UnpackDgsp,
        ThreadFunc, Xlate, RemoteCxt;
    lapi_reg_dgsp_t: Util_type, idgsp, dgsp_handle, in_usr_func, status;
    lapi_resv_dgsp_t: Util_type, dgsp_handle, in_usr_func, status;
    lapi_dref_dgsp_t: Util_type, dgsp_handle, in_usr_func, status;
    lapi_reg_ddm_t: Util_type, ddm_func, in_usr_func, status;
    lapi_pack_dgsp_t: Util_type, dgsp, in_buf, bytes, out_buf, out_size, position, in_usr_func,
        status;
    lapi_unpack_dgsp_t: Util_type, dgsp, in_buf, in_size, out_buf, bytes, position, in_usr_func,
        status;
    lapi_add_udp_port_t: Util_type, tgt, udp_port, instance_no, in_usr_func, status;
    lapi_thread_func_t: Util_type, mutex_lock, mutex_unlock, mutex_trylock, mutex_getowner,
        cond_wait, cond_timedwait, cond_signal, cond_init, cond_destroy;
    lapi_get_pvo_t: Util_type, length, usr_pvo, address, operation;
    lapi_remote_cxt_t: Util_type, operation, dest, usr_rcxt;
    lapi_dgsp_descr_t: code, code_size, depth, density, size, extent, lext, rext, atom_size;
    lapi_dgsm_copy_t: opcode, bytes, offset;
    lapi_dgsm_block_t: block_disp, block_len;
    lapi_dgsm_mcopy_t: opcode, count, block;
    lapi_dgsm_gosub_t: opcode, to_loc, ret_loc, reps, offset, stride;
    lapi_dgsm_iterate_t: opcode, iter_loc;
    lapi_dgsm_control_t: opcode, operation, operand;
}

constants! {
    TASK_ID NUM_TASKS MAX_UHDR_SZ MAX_DATA_SZ ERROR_CHK TIMEOUT MIN_TIMEOUT MAX_TIMEOUT INTERRUPT_SET
    MAX_PORTS MAX_PKT_SZ NUM_REX_BUFS REX_BUF_SZ LOC_ADDRTBL_SZ EPOCH_NUM USE_THRESH RCV_FIFO_SIZE
    MAX_ATOM_SIZE BUF_CP_SIZE MAX_PKTS_OUT ACK_THRESHOLD QUERY_SHM_ENABLED QUERY_SHM_NUM_TASKS QUERY_SHM_TASKS
    QUERY_STATISTICS PRINT_STATISTICS QUERY_SHM_STATISTICS QUERY_LOCAL_SEND_STATISTICS BULK_XFER
    BULK_MIN_MSG_SIZE LAST_QUERY FETCH_AND_ADD FETCH_AND_OR SWAP COMPARE_AND_SWAP GET_ERR PUT_ERR RMW_ERR
    AM_ERR INT_ERR TMR_ERR L1_LIB L2_LIB L3_LIB L4_LIB LAST_LIB NULL_DEV UDP_DEV LAPI_SHM_DEV LAPI_SELF_DEV LAPI_FABRIC_DEV
    LAPI_SHARE_PROTOCOL LAPI_PSS_GPFS LAPI_INTERRUPT_OFF LAPI_GEN_IOVECTOR LAPI_GEN_STRIDED_XFER
    LAPI_GEN_GENERIC LAPI_GET_XFER LAPI_AM_XFER LAPI_PUT_XFER LAPI_GETV_XFER LAPI_PUTV_XFER LAPI_AMV_XFER
    LAPI_RMW_XFER LAPI_DGSP_XFER LAPI_RDMA_XFER LAPI_AM_LW_XFER LAPI_AMX_XFER LAPI_MC_XFER LAPI_REGISTER_DGSP
    LAPI_RESERVE_DGSP LAPI_UNRESERVE_DGSP LAPI_REG_DDM_FUNC LAPI_DGSP_PACK LAPI_DGSP_UNPACK
    LAPI_ADD_UDP_DEST_PORT LAPI_GET_THREAD_FUNC LAPI_REMOTE_RCXT LAPI_XLATE_ADDRESS LAPI_REGISTER_NOTIFICATION
    LAPI_TRIGGER_ADD LAPI_TRIGGER_REMOVE LAPI_CHECKPOINT_BEFORE LAPI_CHECKPOINT_AFTER LAPI_ADD_UDP_DEST_EXT
    LAPI_STAT_SAVE LAPI_RDMA_ACQUIRE LAPI_RDMA_RELEASE LAPI_RDMA_GET LAPI_RDMA_PUT LAPI_RCALLBACK LAPI_RCNTR_UPDATE LAPI_NORMAL_CALL
    LAPI_SEND_COMPL_HNDLR LAPI_RECV_INLINE_HNDLR LAPI_DGSM_COPY LAPI_DGSM_MCOPY LAPI_DGSM_GOSUB
    LAPI_DGSM_ITERATE LAPI_DGSM_CONTROL LAPI_DGSM_SPARSE LAPI_DGSM_CONTIG LAPI_DGSM_UNIT LAPI_DGSM_NO_CTL
    LAPI_SEND_COMPLETE LAPI_RECV_COMPLETE LAPI_BOTH_COMPLETE LAPI_POLLING_NET LAPI_DISP_CNTR LAPI_NORMAL
    LAPI_LOCAL_STATE LAPI_SEND_REPLY LAPI_DELIVER_MSG LAPI_BURY_MSG LAPI_DROP_PKT LAPI_MSG_INITIAL
    LAPI_MSG_RECVD LAPI_MSG_PURGED LAPI_MSG_PURGED_RCVD LAPI_MSG_INVALID USE_TGT_VEC_TYPE LAPI_USE_LAZY_ACKS
    BUFFER_BOTH_CONTIGUOUS LAPI_NOT_USE_BULK_XFER LAPI_USE_BULK_XFER LAPI_NOT_STRIPE LAPI_NO_LOCAL_COPY
    LAPI_MAX_MSG_SZ LAPI_MAX_ERR_STRING
    LAPI_VOID_HANDLE LAPI_NULL_THREAD_ID
    LAPI_DGSM_COPY_SIZE LAPI_DGSM_MCOPY_SIZE LAPI_DGSM_MCOPY_BLOCK_SIZE LAPI_DGSM_BLOCK_SIZE
    LAPI_DGSM_GOSUB_SIZE LAPI_DGSM_ITERATE_SIZE LAPI_DGSM_CONTROL_SIZE
    LAPI_SUCCESS LAPI_ERR_UNKNOWN LAPI_ERR_ALL_HNDL_IN_USE LAPI_ERR_BOTH_NETSTR_SET LAPI_ERR_CKPT_LOAD_FAILED
    LAPI_ERR_CSS_LOAD_FAILED LAPI_ERR_INFO_NULL LAPI_ERR_MSG_API LAPI_ERR_NO_NETSTR_SET LAPI_ERR_NO_UDP_HNDLR
    LAPI_ERR_HDR_HNDLR_NULL LAPI_ERR_PSS_NON_ROOT LAPI_WARN_PARM_NULL LAPI_ERR_SHM_KE_NOT_LOADED
    LAPI_ERR_TIMEOUT LAPI_ERR_REG_TIMER LAPI_ERR_UDP_PKT_SZ LAPI_ERR_USER_UDP_HNDLR_FAIL LAPI_ERR_HNDL_INVALID
    LAPI_ERR_RET_PTR_NULL LAPI_ERR_ADDR_HNDL_RANGE LAPI_ERR_ADDR_TBL_NULL LAPI_ERR_TGT_PURGED
    LAPI_ERR_MULTIPLE_WAITERS LAPI_ERR_MEMORY_EXHAUSTED LAPI_ERR_INFO_NONZERO LAPI_ERR_ORG_ADDR_NULL
    LAPI_ERR_TGT_ADDR_NULL LAPI_ERR_DATA_LEN LAPI_ERR_TGT LAPI_ERR_UHDR_NULL LAPI_ERR_UHDR_LEN
    LAPI_ERR_HDR_LEN LAPI_ERR_ORG_EXTENT LAPI_ERR_ORG_STRIDE LAPI_ERR_NO_CONNECTIVITY LAPI_ERR_ADAPTERS_DOWN
    LAPI_ERR_RECV_INCOMP LAPI_ERR_SEND_INCOMP LAPI_ERR_SEND_TIMEOUT LAPI_ERR_SHM_SETUP LAPI_ERR_ORG_VEC_ADDR
    LAPI_ERR_ORG_VEC_LEN LAPI_ERR_ORG_VEC_NULL LAPI_ERR_ORG_VEC_TYPE LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL
    LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL LAPI_ERR_TGT_EXTENT LAPI_ERR_TGT_STRIDE LAPI_ERR_TGT_VEC_ADDR
    LAPI_ERR_TGT_VEC_LEN LAPI_ERR_CKPT LAPI_ERR_TGT_VEC_NULL LAPI_ERR_TGT_VEC_TYPE LAPI_ERR_VEC_NUM_DIFF
    LAPI_ERR_VEC_TYPE_DIFF LAPI_ERR_VEC_LEN_DIFF LAPI_ERR_MSG_INFO_NULL LAPI_ERR_POLLING_NET
    LAPI_ERR_CNTR_NULL LAPI_ERR_CNTR_VAL LAPI_ERR_QUERY_TYPE LAPI_ERR_IN_VAL_NULL LAPI_ERR_RMW_OP
    LAPI_ERR_TGT_VAR_NULL LAPI_ERR_SET_VAL LAPI_ERR_DGSP LAPI_ERR_DGSP_ATOM LAPI_ERR_DGSP_BRANCH
    LAPI_ERR_DGSP_CTL LAPI_ERR_DGSP_COPY_SZ LAPI_ERR_DGSP_FREE LAPI_ERR_DGSP_OPC LAPI_ERR_DGSP_REPS
    LAPI_ERR_DGSP_STACK LAPI_ERR_OP_SZ LAPI_ERR_UDP_PORT_INFO LAPI_ERR_XFER_CMD LAPI_ERR_UTIL_CMD
    LAPI_ERR_CATALOG_FAIL LAPI_ERR_PACK_SZ LAPI_ERR_DGSP_OTHER LAPI_ERR_UDP_SOCKET LAPI_ERR_COLLECTIVE_PSS
    LAPI_ERR_TGT_CONTEXT LAPI_ERR_SRC_CONTEXT LAPI_ERR_TGT_BUFHNDL LAPI_ERR_SRC_BUFHNDL LAPI_ERR_TGT_OFFSET
    LAPI_ERR_SRC_OFFSET LAPI_ERR_NO_RDMA_RESOURCE LAPI_ERR_NO_ENV_VAR LAPI_ERR_CODE_UNKNOWN
    LAPI_ERR_XLATE_FAILED LAPI_ERR_RDMA_RESOURCES LAPI_ERR_LW_DATA_LEN LAPI_ERR_NO_HNDLR_SET
    LAPI_ERR_OFFSET_LEN LAPI_ERR_INIT_FAILED LAPI_ERR_BAD_PARAMETER LAPI_WAIT_INTERRUPTED LAPI_ERR_PURGED_TASK
    LAPI_ERR_EXHAUSTED_MEMORY LAPI_ERR_NONZERO_INFO LAPI_ERR_BAD_FIRST_PARM LAPI_ERR_BAD_SECOND_PARM
    LAPI_ERR_BAD_THIRD_PARM LAPI_ERR_BAD_FOURTH_PARM LAPI_ERR_BAD_FIFTH_PARM LAPI_ERR_BAD_SIXTH_PARM
    LAPI_ERR_BAD_SEVENTH_PARM LAPI_ERR_BAD_EIGHTH_PARM LAPI_ERR_BAD_NINTH_PARM
}
