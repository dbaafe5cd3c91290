//! The layout of every structure on 64-bit machines, asserted at compile time.
//!
//! Programs built against other levels of LAPI exist: a wrong offset here would read their
//! memory wrongly.

#![cfg(target_pointer_width = "64")]

use super::*;
use std::mem::{align_of, offset_of};

/// `layout!(type, size, field at offset, ...)`
macro_rules! layout {
    ($type:ty, $size:literal $(, $field:ident $offset:literal)*) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(offset_of!($type, $field) == $offset);)*
        };
    };
}

layout!(lapi_info_t, 56, protocol 0, lib_vers 4, epoch_num 8, num_compl_hndlr_thr 12, instance_no 16, info6 20,
    err_hndlr 24, lapi_thread_attr 32, adapter_name 40, add_info 48);
layout!(lapi_extend_t, 104, udp_hndlr 0, add_udp_addrs 8, num_udp_addr 16, pad 20, udp_ext_hndlr 24,
    add_udp_ext_addrs 32, reserve 40);
layout!(lapi_udp_t, 8, ip_addr 0, port_no 4);
layout!(lapi_udpinfo_t, 96, task_id 0, tot_num_tasks 4, num_tasks 8, instance_no 12, reserve 16);
layout!(com_thread_info_t, 32, thread_attr 0, thread_init_func 8, parm_ptr 16, extra_ptr 24);

layout!(lapi_cntr_t, 176, cntr 0, record 0);
layout!(lapi_cntr_record_t, 176, cntr 0, flags 4, waiter 8, num_dest 16, pad 20, dest_list 24, dest_status 32,
    reserve 40);
const _: () = assert!(align_of::<lapi_cntr_t>() == 8);
layout!(lapi_cond_t, 64, cond 0);

layout!(lapi_return_info_t, 64, msg_len 0, MAGIC 8, ret_flags 12, ctl_flags 16, dgsp_handle 24, bytes 32, src 40,
    udata_one_pkt_ptr 48, recv_offset_dgsp_bytes 56);
layout!(lapi_sh_info_t, 56, src 0, reason 4, reserve 8);
layout!(lapi_msg_info_t, 88, status 0, reserve 8);
layout!(lapi_statistics_t, 72, Tot_dup_pkt_cnt 0, Tot_retrans_pkt_cnt 8, Tot_gho_pkt_cnt 16, Tot_pkt_sent_cnt 24,
    Tot_pkt_rcv_cnt 32, Tot_data_sent 40, Tot_data_rcv 48, Tot_ack_send_cnt 56, Tot_ack_recv_cnt 64);

layout!(lapi_vec_t, 24, vec_type 0, num_vecs 4, info 8, len 16);
layout!(lapi_lvec_t, 24, vec_type 0, num_vecs 4, info 8, len 16);

layout!(lapi_get_t, 72, Xfer_type 0, flags 4, tgt 8, tgt_addr 16, org_addr 24, len 32, tgt_cntr 40, org_cntr 48,
    chndlr 56, cinfo 64);
layout!(lapi_put_t, 80, Xfer_type 0, flags 4, tgt 8, tgt_addr 16, org_addr 24, len 32, shdlr 40, sinfo 48,
    tgt_cntr 56, org_cntr 64, cmpl_cntr 72);
layout!(lapi_am_t, 96, Xfer_type 0, flags 4, tgt 8, hdr_hdl 16, uhdr_len 24, uhdr 32, udata 40, udata_len 48,
    shdlr 56, sinfo 64, tgt_cntr 72, org_cntr 80, cmpl_cntr 88);
layout!(lapi_amv_t, 88, Xfer_type 0, flags 4, tgt 8, hdr_hdl 16, uhdr_len 24, uhdr 32, shdlr 40, sinfo 48,
    org_vec 56, tgt_cntr 64, org_cntr 72, cmpl_cntr 80);
layout!(lapi_getv_t, 64, Xfer_type 0, flags 4, tgt 8, org_vec 16, tgt_vec 24, tgt_cntr 32, org_cntr 40, chndlr 48,
    cinfo 56);
layout!(lapi_putv_t, 72, Xfer_type 0, flags 4, tgt 8, shdlr 16, sinfo 24, org_vec 32, tgt_vec 40, tgt_cntr 48,
    org_cntr 56, cmpl_cntr 64);
layout!(lapi_rmw_t, 64, Xfer_type 0, op 4, tgt 8, size 12, tgt_var 16, in_val 24, prev_tgt_val 32, org_cntr 40,
    shdlr 48, sinfo 56);
layout!(lapi_amdgsp_t, 112, Xfer_type 0, flags 4, tgt 8, hdr_hdl 16, uhdr_len 24, uhdr 32, udata 40, udata_len 48,
    shdlr 56, sinfo 64, tgt_cntr 72, org_cntr 80, cmpl_cntr 88, dgsp 96, status 104);
layout!(lapi_hwxfer_t, 72, Xfer_type 0, tgt 4, op 8, rdma_tag 10, remote_cxt 12, src_pvo 16, tgt_pvo 24,
    src_offset 32, tgt_offset 36, len 40, org_cntr 48, shdlr 56, sinfo 64);
layout!(lapi_xfer_t, 120, Xfer_type 0);

layout!(lapi_reg_dgsp_t, 32, Util_type 0, idgsp 8, dgsp_handle 16, in_usr_func 24, status 28);
layout!(lapi_resv_dgsp_t, 24, Util_type 0, dgsp_handle 8, in_usr_func 16, status 20);
layout!(lapi_dref_dgsp_t, 24, Util_type 0, dgsp_handle 8, in_usr_func 16, status 20);
layout!(lapi_reg_ddm_t, 24, Util_type 0, ddm_func 8, in_usr_func 16, status 20);
layout!(lapi_add_udp_port_t, 32, Util_type 0, tgt 4, udp_port 8, instance_no 16, in_usr_func 20, status 24);
layout!(lapi_pack_dgsp_t, 64, Util_type 0, dgsp 8, in_buf 16, bytes 24, out_buf 32, out_size 40, position 48,
    in_usr_func 56, status 60);
layout!(lapi_unpack_dgsp_t, 64, Util_type 0, dgsp 8, in_buf 16, in_size 24, out_buf 32, bytes 40, position 48,
    in_usr_func 56, status 60);
layout!(lapi_thread_func_t, 80, Util_type 0, mutex_lock 8, mutex_unlock 16, mutex_trylock 24, mutex_getowner 32,
    cond_wait 40, cond_timedwait 48, cond_signal 56, cond_init 64, cond_destroy 72);
layout!(lapi_get_pvo_t, 32, Util_type 0, length 4, usr_pvo 8, address 16, operation 24);
layout!(lapi_remote_cxt_t, 16, Util_type 0, operation 4, dest 8, usr_rcxt 12);
layout!(lapi_util_t, 80, Util_type 0);

layout!(lapi_dgsp_descr_t, 64, code 0, code_size 8, depth 12, density 16, size 24, extent 32, lext 40, rext 48,
    atom_size 56);
layout!(lapi_dgsm_copy_t, 24, opcode 0, bytes 8, offset 16);
layout!(lapi_dgsm_block_t, 16, block_disp 0, block_len 8);
layout!(lapi_dgsm_mcopy_t, 24, opcode 0, count 4, block 8);
layout!(lapi_dgsm_gosub_t, 40, opcode 0, to_loc 4, ret_loc 8, reps 16, offset 24, stride 32);
layout!(lapi_dgsm_iterate_t, 8, opcode 0, iter_loc 4);
layout!(lapi_dgsm_control_t, 12, opcode 0, operation 4, operand 8);
