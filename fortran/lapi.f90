! The module lapi: lapif.h, and interfaces, so that the compiler checks what the calls are given.
! SPDX-License-Identifier: Apache-2.0 OR MIT
!
! It is delivered as source, because each compiler has a form of its own for modules. Compile it once,
!
!     mpxlf90_r -c PREFIX/include/lapi.f90
!
! or put the line  include 'lapi.f90'  in front of a program, which then says  use lapi  instead of
! including lapif.h.
!
! What may be of any type (buffers, structures of LAPI_XFER and LAPI_UTIL) is taken as it is; so are the
! counters of this task, which are TYPE (LAPI_CNTR_T) or LAPI_ADDR_NULL, and other arguments that may be
! LAPI_ADDR_NULL.
module lapi
  implicit none

  include 'lapif.h'

  interface
    subroutine LAPI_INIT(hndl, lapi_info, ierror)
      import
      integer(KIND=4), intent(out) :: hndl
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: lapi_info
      !DIR$ IGNORE_TKR(TKR) lapi_info
      type(*), dimension(*) :: lapi_info
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_INIT

    subroutine LAPI_TERM(hndl, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_TERM

    subroutine LAPI_QENV(hndl, query, ret_val, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(in) :: query
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: ret_val
      !DIR$ IGNORE_TKR(TKR) ret_val
      type(*), dimension(*) :: ret_val
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_QENV

    subroutine LAPI_SENV(hndl, query, set_val, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(in) :: query
      integer(KIND=4), intent(in) :: set_val
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_SENV

    subroutine LAPI_MSG_STRING(error_code, buf, ierror)
      import
      integer(KIND=4), intent(in) :: error_code
      character(LEN=*), intent(out) :: buf(*)
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_MSG_STRING

    subroutine LAPI_ADDR_GET(hndl, addr, addr_hndl, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=LAPI_ADDR_TYPE), intent(out) :: addr
      integer(KIND=4), intent(in) :: addr_hndl
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_ADDR_GET

    subroutine LAPI_ADDRESS_INIT64(hndl, my_addr, add_tab, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=LAPI_ADDR_TYPE), intent(in) :: my_addr
      integer(KIND=LAPI_LONG_LONG_TYPE), intent(out) :: add_tab(*)
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_ADDRESS_INIT64

    subroutine LAPI_PUT(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr, org_cntr, cmpl_cntr, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(in) :: tgt
      integer(KIND=LAPI_LONG_TYPE), intent(in) :: len
      integer(KIND=LAPI_ADDR_TYPE), intent(in) :: tgt_addr
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: org_addr
      !DIR$ IGNORE_TKR(TKR) org_addr
      type(*), dimension(*) :: org_addr
      integer(KIND=LAPI_ADDR_TYPE), intent(in) :: tgt_cntr
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      !DIR$ IGNORE_TKR(TKR) org_cntr
      type(*), dimension(*) :: org_cntr
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: cmpl_cntr
      !DIR$ IGNORE_TKR(TKR) cmpl_cntr
      type(*), dimension(*) :: cmpl_cntr
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_PUT

    subroutine LAPI_GET(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr, org_cntr, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(in) :: tgt
      integer(KIND=LAPI_LONG_TYPE), intent(in) :: len
      integer(KIND=LAPI_ADDR_TYPE), intent(in) :: tgt_addr
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: org_addr
      !DIR$ IGNORE_TKR(TKR) org_addr
      type(*), dimension(*) :: org_addr
      integer(KIND=LAPI_ADDR_TYPE), intent(in) :: tgt_cntr
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      !DIR$ IGNORE_TKR(TKR) org_cntr
      type(*), dimension(*) :: org_cntr
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_GET

    subroutine LAPI_RMW(hndl, op, tgt, tgt_var, in_val, prev_tgt_val, org_cntr, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(in) :: op
      integer(KIND=4), intent(in) :: tgt
      integer(KIND=LAPI_ADDR_TYPE), intent(in) :: tgt_var
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: in_val
      !DIR$ IGNORE_TKR(TKR) in_val
      type(*), dimension(*) :: in_val
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: prev_tgt_val
      !DIR$ IGNORE_TKR(TKR) prev_tgt_val
      type(*), dimension(*) :: prev_tgt_val
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      !DIR$ IGNORE_TKR(TKR) org_cntr
      type(*), dimension(*) :: org_cntr
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_RMW

    subroutine LAPI_RMW64(hndl, op, tgt, tgt_var, in_val, prev_tgt_val, org_cntr, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(in) :: op
      integer(KIND=4), intent(in) :: tgt
      integer(KIND=LAPI_ADDR_TYPE), intent(in) :: tgt_var
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: in_val
      !DIR$ IGNORE_TKR(TKR) in_val
      type(*), dimension(*) :: in_val
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: prev_tgt_val
      !DIR$ IGNORE_TKR(TKR) prev_tgt_val
      type(*), dimension(*) :: prev_tgt_val
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      !DIR$ IGNORE_TKR(TKR) org_cntr
      type(*), dimension(*) :: org_cntr
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_RMW64

    subroutine LAPI_XFER(hndl, xfer_cmd, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: xfer_cmd
      !DIR$ IGNORE_TKR(TKR) xfer_cmd
      type(*), dimension(*) :: xfer_cmd
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_XFER

    subroutine LAPI_UTIL(hndl, util_cmd, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: util_cmd
      !DIR$ IGNORE_TKR(TKR) util_cmd
      type(*), dimension(*) :: util_cmd
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_UTIL

    subroutine LAPI_GETCNTR(hndl, cntr, val, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr
      !DIR$ IGNORE_TKR(TKR) cntr
      type(*), dimension(*) :: cntr
      integer(KIND=4), intent(out) :: val
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_GETCNTR

    subroutine LAPI_SETCNTR(hndl, cntr, val, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr
      !DIR$ IGNORE_TKR(TKR) cntr
      type(*), dimension(*) :: cntr
      integer(KIND=4), intent(in) :: val
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_SETCNTR

    subroutine LAPI_WAITCNTR(hndl, cntr, val, cur_cntr_val, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr
      !DIR$ IGNORE_TKR(TKR) cntr
      type(*), dimension(*) :: cntr
      integer(KIND=4), intent(in) :: val
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: cur_cntr_val
      !DIR$ IGNORE_TKR(TKR) cur_cntr_val
      type(*), dimension(*) :: cur_cntr_val
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_WAITCNTR

    subroutine LAPI_PROBE(hndl, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_PROBE

    subroutine LAPI_MSGPOLL(hndl, cnt, info, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(in) :: cnt
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: info
      !DIR$ IGNORE_TKR(TKR) info
      type(*), dimension(*) :: info
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_MSGPOLL

    subroutine LAPI_FENCE(hndl, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_FENCE

    subroutine LAPI_GFENCE(hndl, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_GFENCE

    subroutine LAPI_PUTV(hndl, tgt, tgt_vec, org_vec, tgt_cntr, org_cntr, cmpl_cntr, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(in) :: tgt
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_vec
      !DIR$ IGNORE_TKR(TKR) tgt_vec
      type(*), dimension(*) :: tgt_vec
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: org_vec
      !DIR$ IGNORE_TKR(TKR) org_vec
      type(*), dimension(*) :: org_vec
      integer(KIND=LAPI_ADDR_TYPE), intent(in) :: tgt_cntr
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      !DIR$ IGNORE_TKR(TKR) org_cntr
      type(*), dimension(*) :: org_cntr
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: cmpl_cntr
      !DIR$ IGNORE_TKR(TKR) cmpl_cntr
      type(*), dimension(*) :: cmpl_cntr
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_PUTV

    subroutine LAPI_GETV(hndl, tgt, tgt_vec, org_vec, tgt_cntr, org_cntr, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(in) :: tgt
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: tgt_vec
      !DIR$ IGNORE_TKR(TKR) tgt_vec
      type(*), dimension(*) :: tgt_vec
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: org_vec
      !DIR$ IGNORE_TKR(TKR) org_vec
      type(*), dimension(*) :: org_vec
      integer(KIND=LAPI_ADDR_TYPE), intent(in) :: tgt_cntr
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: org_cntr
      !DIR$ IGNORE_TKR(TKR) org_cntr
      type(*), dimension(*) :: org_cntr
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_GETV

    subroutine LAPI_NOPOLL_WAIT(hndl, cntr, val, cur_cntr_val, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr
      !DIR$ IGNORE_TKR(TKR) cntr
      type(*), dimension(*) :: cntr
      integer(KIND=4), intent(in) :: val
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: cur_cntr_val
      !DIR$ IGNORE_TKR(TKR) cur_cntr_val
      type(*), dimension(*) :: cur_cntr_val
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_NOPOLL_WAIT

    subroutine LAPI_PURGE_TOTASK(hndl, dest, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(in) :: dest
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_PURGE_TOTASK

    subroutine LAPI_RESUME_TOTASK(hndl, dest, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      integer(KIND=4), intent(in) :: dest
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_RESUME_TOTASK

    subroutine LAPI_SETCNTR_WSTATUS(hndl, cntr, num_dest, dest_list, dest_status, ierror)
      import
      integer(KIND=4), intent(in) :: hndl
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: cntr
      !DIR$ IGNORE_TKR(TKR) cntr
      type(*), dimension(*) :: cntr
      integer(KIND=4), intent(in) :: num_dest
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: dest_list
      !DIR$ IGNORE_TKR(TKR) dest_list
      type(*), dimension(*) :: dest_list
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: dest_status
      !DIR$ IGNORE_TKR(TKR) dest_status
      type(*), dimension(*) :: dest_status
      integer(KIND=4), intent(out) :: ierror
    end subroutine LAPI_SETCNTR_WSTATUS
  end interface

  ! These take a procedure or a variable in the same place, which no interface can say.
  external :: LAPI_ADDR_SET, LAPI_ADDRESS, LAPI_ADDRESS_INIT, LAPI_AMSEND, LAPI_AMSENDV

end module lapi
