//! The table of calls: each once, with its names and its arguments. Everything that exists once for
//! each call is made from it by a macro: the exported functions by both their names, those of
//! Fortran, and the prototypes of `lapi.h`.

/// Passes the table to the macro `$each`, one line for each call, in the order of the
/// manual's chapters:
///
/// ```text
/// /// What it does, as `lapi.h` says it.
/// LAPI_Probe probe PROBE (hndl: lapi_handle_t as Value);
/// ```
///
/// The three names are that of C, and what follows `lapi_` and `LAPI_` in Fortran. After `as`
/// stands how Fortran passes the argument, always by reference:
///
/// | | what the reference leads to |
/// |---|---|
/// | `Value` | the value that C gets |
/// | `Here` | a variable of this task, whose address C gets |
/// | `There` | an integer that holds an address of the target |
/// | `Handler` | a procedure, or an integer that holds an address or an index of LAPI_Addr_set |
/// | `Vector` | the vector of the target, or an integer that holds its address |
///
/// Each call is described by the manual's man page of its name (chapters 18 and 19), and returns
/// LAPI_SUCCESS or one of the error codes named there. Lengths are in bytes, times in seconds.
#[macro_export]
macro_rules! for_each_call {
    ($each:ident) => {
        $each! {
            /// Starts a context and returns its handle in hndl. Sets protocol of lapi_info, which
            /// may be freed afterwards with everything that it points to.
            LAPI_Init init INIT (hndl: *mut lapi_handle_t as Here, lapi_info: *mut lapi_info_t as Here);

            /// Ends a context; its handle is invalid afterwards.
            LAPI_Term term TERM (hndl: lapi_handle_t as Value);

            /// Queries an attribute of the context. What ret_val points to, and how large that is,
            /// depends on query.
            LAPI_Qenv qenv QENV (
                hndl: lapi_handle_t as Value,
                query: lapi_query_t as Value,
                ret_val: *mut c_int as Here,
            );

            /// Sets an attribute of the context.
            LAPI_Senv senv SENV (
                hndl: lapi_handle_t as Value,
                query: lapi_query_t as Value,
                set_val: c_int as Value,
            );

            /// Writes the text of an error code into a buffer of LAPI_MAX_ERR_STRING bytes.
            /// Needs no context.
            LAPI_Msg_string msg_string MSG_STRING (error_code: c_int as Value, buf: *mut c_void as Here);

            /// Enters an address in the table under an index; 0 < addr_hndl < LOC_ADDRTBL_SZ.
            LAPI_Addr_set addr_set ADDR_SET (
                hndl: lapi_handle_t as Value,
                addr: *mut c_void as Handler,
                addr_hndl: c_int as Value,
            );

            /// Returns an address of the table.
            LAPI_Addr_get addr_get ADDR_GET (
                hndl: lapi_handle_t as Value,
                addr: *mut *mut c_void as Here,
                addr_hndl: c_int as Value,
            );

            /// Returns the address of a variable; for Fortran. Needs no context.
            LAPI_Address address ADDRESS (my_addr: *mut c_void as Here, ret_addr: *mut c_ulong as Here);

            /// Collective: every task gives an address and gets those of all, by task.
            LAPI_Address_init address_init ADDRESS_INIT (
                hndl: lapi_handle_t as Value,
                my_addr: *mut c_void as Handler,
                add_tab: *mut *mut c_void as Here,
            );

            /// LAPI_Address_init with addresses of 64 bits in 32-bit programs too.
            LAPI_Address_init64 address_init64 ADDRESS_INIT64 (
                hndl: lapi_handle_t as Value,
                my_addr: lapi_long_t as Handler,
                add_tab: *mut lapi_long_t as Here,
            );

            /// Copies len bytes to the memory of the target. Does not wait; the counters
            /// show its progress.
            LAPI_Put put PUT (
                hndl: lapi_handle_t as Value,
                tgt: c_uint as Value,
                len: c_ulong as Value,
                tgt_addr: *mut c_void as There,
                org_addr: *mut c_void as Here,
                tgt_cntr: *mut lapi_cntr_t as There,
                org_cntr: *mut lapi_cntr_t as Here,
                cmpl_cntr: *mut lapi_cntr_t as Here,
            );

            /// Copies len bytes from the memory of the target. Does not wait; the counters
            /// show its progress.
            LAPI_Get get GET (
                hndl: lapi_handle_t as Value,
                tgt: c_uint as Value,
                len: c_ulong as Value,
                tgt_addr: *mut c_void as There,
                org_addr: *mut c_void as Here,
                tgt_cntr: *mut lapi_cntr_t as There,
                org_cntr: *mut lapi_cntr_t as Here,
            );

            /// Sends an active message: the header handler hdr_hdl, an address at the target or an
            /// index of LAPI_Addr_set, runs there and returns where udata goes. Does not wait.
            LAPI_Amsend amsend AMSEND (
                hndl: lapi_handle_t as Value,
                tgt: c_uint as Value,
                hdr_hdl: *mut c_void as Handler,
                uhdr: *mut c_void as Here,
                uhdr_len: c_uint as Value,
                udata: *mut c_void as Here,
                udata_len: c_ulong as Value,
                tgt_cntr: *mut lapi_cntr_t as There,
                org_cntr: *mut lapi_cntr_t as Here,
                cmpl_cntr: *mut lapi_cntr_t as Here,
            );

            /// Reads, changes and writes an int of the target in one step. Does not wait.
            LAPI_Rmw rmw RMW (
                hndl: lapi_handle_t as Value,
                op: RMW_ops_t as Value,
                tgt: c_uint as Value,
                tgt_var: *mut c_int as There,
                in_val: *mut c_int as Here,
                prev_tgt_val: *mut c_int as Here,
                org_cntr: *mut lapi_cntr_t as Here,
            );

            /// Reads, changes and writes a long long of the target in one step. Does not wait.
            LAPI_Rmw64 rmw64 RMW64 (
                hndl: lapi_handle_t as Value,
                op: RMW_ops_t as Value,
                tgt: c_uint as Value,
                tgt_var: *mut c_longlong as There,
                in_val: *mut c_longlong as Here,
                prev_tgt_val: *mut c_longlong as Here,
                org_cntr: *mut lapi_cntr_t as Here,
            );

            /// Starts the transfer that a structure describes; Xfer_type is its kind.
            /// Does not wait.
            LAPI_Xfer xfer XFER (hndl: lapi_handle_t as Value, xfer_cmd: *mut lapi_xfer_t as Here);

            /// Registers DGSPs and packs by them, returns the functions of the lock, sets UDP
            /// addresses; Util_type is the kind.
            LAPI_Util util UTIL (hndl: lapi_handle_t as Value, util_cmd: *mut lapi_util_t as Here);

            /// Reads a counter.
            LAPI_Getcntr getcntr GETCNTR (
                hndl: lapi_handle_t as Value,
                cntr: *mut lapi_cntr_t as Here,
                val: *mut c_int as Here,
            );

            /// Sets a counter.
            LAPI_Setcntr setcntr SETCNTR (
                hndl: lapi_handle_t as Value,
                cntr: *mut lapi_cntr_t as Here,
                val: c_int as Value,
            );

            /// Waits until a counter has reached val and subtracts val from it; cur_cntr_val gets
            /// the rest and may be null.
            LAPI_Waitcntr waitcntr WAITCNTR (
                hndl: lapi_handle_t as Value,
                cntr: *mut lapi_cntr_t as Here,
                val: c_int as Value,
                cur_cntr_val: *mut c_int as Here,
            );

            /// Lets messages make progress.
            LAPI_Probe probe PROBE (hndl: lapi_handle_t as Value);

            /// Lets messages make progress, at most cnt times, until one is complete; info shows
            /// what has completed.
            LAPI_Msgpoll msgpoll MSGPOLL (
                hndl: lapi_handle_t as Value,
                cnt: c_uint as Value,
                info: *mut lapi_msg_info_t as Here,
            );

            /// Waits until all operations of this task are complete at their targets.
            LAPI_Fence fence FENCE (hndl: lapi_handle_t as Value);

            /// Collective: LAPI_Fence in every task, and a barrier.
            LAPI_Gfence gfence GFENCE (hndl: lapi_handle_t as Value);

            /// LAPI_Amsend of a vector. Does not wait.
            LAPI_Amsendv amsendv AMSENDV (
                hndl: lapi_handle_t as Value,
                tgt: c_uint as Value,
                hdr_hdl: *mut c_void as Handler,
                uhdr: *mut c_void as Here,
                uhdr_len: c_uint as Value,
                org_vec: *mut lapi_vec_t as Here,
                tgt_cntr: *mut lapi_cntr_t as There,
                org_cntr: *mut lapi_cntr_t as Here,
                cmpl_cntr: *mut lapi_cntr_t as Here,
            );

            /// LAPI_Put of a vector; tgt_vec is in this task and holds addresses of the target.
            /// Does not wait.
            LAPI_Putv putv PUTV (
                hndl: lapi_handle_t as Value,
                tgt: c_uint as Value,
                tgt_vec: *mut lapi_vec_t as Vector,
                org_vec: *mut lapi_vec_t as Here,
                tgt_cntr: *mut lapi_cntr_t as There,
                org_cntr: *mut lapi_cntr_t as Here,
                cmpl_cntr: *mut lapi_cntr_t as Here,
            );

            /// LAPI_Get of a vector; tgt_vec is in this task and holds addresses of the target.
            /// Does not wait.
            LAPI_Getv getv GETV (
                hndl: lapi_handle_t as Value,
                tgt: c_uint as Value,
                tgt_vec: *mut lapi_vec_t as Vector,
                org_vec: *mut lapi_vec_t as Here,
                tgt_cntr: *mut lapi_cntr_t as There,
                org_cntr: *mut lapi_cntr_t as Here,
            );

            /// Waits for a counter without polling, and subtracts val from it.
            LAPI_Nopoll_wait nopoll_wait NOPOLL_WAIT (
                hndl: lapi_handle_t as Value,
                cntr_ptr: *mut lapi_cntr_t as Here,
                val: c_int as Value,
                cur_cntr_val: *mut c_int as Here,
            );

            /// Drops all operations to a task that has failed.
            LAPI_Purge_totask purge_totask PURGE_TOTASK (
                hndl: lapi_handle_t as Value,
                dest: c_uint as Value,
            );

            /// Allows operations to a task that was purged.
            LAPI_Resume_totask resume_totask RESUME_TOTASK (
                hndl: lapi_handle_t as Value,
                dest: c_uint as Value,
            );

            /// Sets a counter to 0 and gives it a list of tasks; dest_status shows the state of
            /// each (LAPI_MSG_INITIAL etc.).
            LAPI_Setcntr_wstatus setcntr_wstatus SETCNTR_WSTATUS (
                hndl: lapi_handle_t as Value,
                cntr: *mut lapi_cntr_t as Here,
                num_dest: c_int as Value,
                dest_list: *mut c_uint as Here,
                dest_status: *mut c_int as Here,
            );
        }
    };
}
