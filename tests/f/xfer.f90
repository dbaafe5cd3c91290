! LAPI_XFER with every structure but that of gather/scatter programs (dgsp.f90); send completion handlers, completion handlers
! at the origin, and an error handler. Each task works on the next one.
!
! Variables that LAPI reads or changes by their addresses are in a module: a compiler assumes that only calls with a local
! variable as an argument use it.

module state
  implicit none
  include 'lapif.h'
  integer, parameter :: n = 3000
  integer :: board(n), mine(n), header(2), word, old, add
  integer(kind=LAPI_LONG_LONG_TYPE) :: long, long_old
  integer :: sent(3), got(3), errors(5)
  type(LAPI_CNTR_T) :: tgt
  integer(kind=LAPI_ADDR_TYPE) :: parts(1)
  integer(kind=LAPI_LONG_TYPE) :: lengths(1)
  type(LAPI_VEC_T) :: there
end module state

subroutine all_sent(hndl, info, what)
  use state
  implicit none
  integer :: hndl, info(3)
  type(LAPI_SH_INFO_T) :: what
  info(2) = what%src
  info(3) = what%reason
  info(1) = info(1) + 1
end subroutine all_sent

subroutine all_got(hndl, info)
  implicit none
  integer :: hndl, info(3)
  info(2) = hndl
  info(1) = info(1) + 1
end subroutine all_got

function accept_message(hndl, uhdr, uhdr_len, msg_len, comp_h, user_info) result(place)
  use state
  implicit none
  integer :: hndl, uhdr(*), uhdr_len, ierror
  integer(kind=LAPI_LONG_TYPE) :: msg_len
  integer(kind=LAPI_ADDR_TYPE) :: comp_h, user_info, place
  comp_h = LAPI_ADDR_NULL
  call LAPI_ADDRESS(board(uhdr(1)), place, ierror)
end function accept_message

! A vector of one piece, of the type that the header says.
function accept_vector(hndl, uhdr, uhdr_len, len_vec, comp_h, user_info) result(vector)
  use state
  implicit none
  integer :: hndl, uhdr(*), uhdr_len, ierror
  integer(kind=LAPI_LONG_TYPE) :: len_vec
  integer(kind=LAPI_ADDR_TYPE) :: comp_h, user_info, vector
  there%vec_type = uhdr(2)
  there%num_vecs = 1
  call LAPI_ADDRESS(board(uhdr(1)), parts(1), ierror)
  lengths = 400
  call LAPI_ADDRESS(parts, there%info, ierror)
  call LAPI_ADDRESS(lengths, there%len, ierror)
  comp_h = LAPI_ADDR_NULL
  call LAPI_ADDRESS(there, vector, ierror)
end function accept_vector

subroutine complain(hndl, error_code, err_type, task, src)
  use state
  implicit none
  integer :: hndl, error_code, err_type, task, src
  errors = [errors(1) + 1, error_code, err_type, task, src]
end subroutine complain

program xfer
  use state
  implicit none
  integer :: hndl, me, tasks, next, last, ierror, i, left
  integer(kind=LAPI_LONG_LONG_TYPE) :: long_add
  integer(kind=LAPI_ADDR_TYPE) :: address, boards(0:63), counters(0:63), words(0:63), longs(0:63), from(1), to(1)
  integer(kind=LAPI_ADDR_TYPE) :: org_at, cmpl_at, sent_at, got_at, shdlr, chndlr, accept_message, accept_vector
  integer(kind=LAPI_LONG_TYPE) :: len(1)
  external :: accept_message, accept_vector, all_sent, all_got, complain
  type(LAPI_INFO_T) :: info
  type(LAPI_PUT_T) :: put
  type(LAPI_GET_T) :: get
  type(LAPI_AM_T) :: am
  type(LAPI_AMV_T) :: amv
  type(LAPI_PUTV_T) :: putv
  type(LAPI_GETV_T) :: getv
  type(LAPI_RMW_T) :: rmw
  type(LAPI_VEC_T) :: org_vec, tgt_vec
  type(LAPI_CNTR_T) :: org, cmpl
  common /counters/ org, cmpl

  info = LAPI_INFO_T(0, LAST_LIB, 0, 0, 0, 0, 0, 0, 0, 0)
  call LAPI_ADDRESS(complain, info%err_hndlr, ierror)
  call LAPI_INIT(hndl, info, ierror)
  call ft_ok(ierror, 'LAPI_INIT')
  call LAPI_QENV(hndl, TASK_ID, me, ierror)
  call LAPI_QENV(hndl, NUM_TASKS, tasks, ierror)
  call LAPI_SENV(hndl, ERROR_CHK, 1, ierror)
  next = mod(me + 1, tasks)
  last = mod(me + tasks - 1, tasks)
  errors = 0
  board = 0
  word = 40
  long = 4000000000_8
  mine = [(10000 * me + i, i=1, n)]
  call LAPI_SETCNTR(hndl, tgt, 0, ierror)
  call LAPI_SETCNTR(hndl, org, 0, ierror)
  call LAPI_SETCNTR(hndl, cmpl, 0, ierror)
  call LAPI_ADDRESS(board, address, ierror)
  call LAPI_ADDRESS_INIT(hndl, address, boards, ierror)
  call LAPI_ADDRESS(tgt, address, ierror)
  call LAPI_ADDRESS_INIT(hndl, address, counters, ierror)
  call LAPI_ADDRESS(word, address, ierror)
  call LAPI_ADDRESS_INIT(hndl, address, words, ierror)
  call LAPI_ADDRESS(long, address, ierror)
  call LAPI_ADDRESS_INIT(hndl, address, longs, ierror)
  call LAPI_ADDRESS(org, org_at, ierror)
  call LAPI_ADDRESS(cmpl, cmpl_at, ierror)
  call LAPI_ADDRESS(all_sent, shdlr, ierror)
  call LAPI_ADDRESS(sent, sent_at, ierror)
  call LAPI_ADDRESS(all_got, chndlr, ierror)
  call LAPI_ADDRESS(got, got_at, ierror)

  ! LAPI_PUT_T
  sent = 0
  put%Xfer_type = LAPI_PUT_XFER
  put%flags = 0
  put%tgt = next
  put%tgt_addr = boards(next)
  call LAPI_ADDRESS(mine, put%org_addr, ierror)
  put%len = 4 * n
  put%shdlr = shdlr
  put%sinfo = sent_at
  put%tgt_cntr = counters(next)
  put%org_cntr = org_at
  put%cmpl_cntr = cmpl_at
  call LAPI_XFER(hndl, put, ierror)
  call ft_ok(ierror, 'LAPI_PUT_T')
  call wait_for_all()
  call ft_true(all(board == [(10000 * last + i, i=1, n)]), 'LAPI_PUT_T')
  call ft_eq(sent(1), 1, 'the send completion handler')
  call ft_eq(sent(2), next, 'the task in its information')
  call ft_eq(sent(3), LAPI_SUCCESS, 'the reason in its information')

  ! LAPI_GET_T
  got = 0
  get%Xfer_type = LAPI_GET_XFER
  get%flags = 0
  get%tgt = next
  get%tgt_addr = boards(next) + 400
  call LAPI_ADDRESS(mine, get%org_addr, ierror)
  get%len = 40
  get%tgt_cntr = counters(next)
  get%org_cntr = LAPI_ADDR_NULL
  get%chndlr = chndlr
  get%cinfo = got_at
  call LAPI_XFER(hndl, get, ierror)
  call ft_ok(ierror, 'LAPI_GET_T')
  call LAPI_WAITCNTR(hndl, tgt, 1, left, ierror)
  do while (got(1) == 0)
     call LAPI_PROBE(hndl, ierror)
  end do
  call ft_eq(got(2), hndl, 'the handle of the completion handler')
  call ft_true(all(mine(1:10) == [(10000 * me + i, i=101, 110)]), 'LAPI_GET_T')
  call LAPI_GFENCE(hndl, ierror)

  ! LAPI_AM_T
  board = 0
  mine = [(10000 * me + i, i=1, n)]
  call LAPI_GFENCE(hndl, ierror)
  sent = 0
  header = [501, 0]
  am%Xfer_type = LAPI_AM_XFER
  am%flags = 0
  am%tgt = next
  call LAPI_ADDRESS(accept_message, am%hdr_hdl, ierror)
  call LAPI_ADDRESS(header, am%uhdr, ierror)
  am%uhdr_len = 8
  call LAPI_ADDRESS(mine, am%udata, ierror)
  am%udata_len = 2000
  am%shdlr = shdlr
  am%sinfo = sent_at
  am%tgt_cntr = counters(next)
  am%org_cntr = org_at
  am%cmpl_cntr = cmpl_at
  call LAPI_XFER(hndl, am, ierror)
  call ft_ok(ierror, 'LAPI_AM_T')
  call wait_for_all()
  call ft_true(all(board(501:1000) == [(10000 * last + i, i=1, 500)]), 'LAPI_AM_T')
  call ft_eq(sent(1), 1, 'the send completion handler')

  ! LAPI_RMW_T, of both sizes
  sent = 0
  add = 2
  long_add = 1000000000000_8
  rmw%Xfer_type = LAPI_RMW_XFER
  rmw%op = FETCH_AND_ADD
  rmw%tgt = next
  rmw%size = 32
  rmw%tgt_var = words(next)
  call LAPI_ADDRESS(add, rmw%in_val, ierror)
  call LAPI_ADDRESS(old, rmw%prev_tgt_val, ierror)
  rmw%org_cntr = org_at
  rmw%shdlr = shdlr
  rmw%sinfo = sent_at
  call LAPI_XFER(hndl, rmw, ierror)
  call ft_ok(ierror, 'LAPI_RMW_T')
  call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
  call ft_eq(old, 40, 'LAPI_RMW_T')
  call ft_eq(sent(1), 1, 'the send completion handler')
  rmw%size = 64
  rmw%tgt_var = longs(next)
  call LAPI_ADDRESS(long_add, rmw%in_val, ierror)
  call LAPI_ADDRESS(long_old, rmw%prev_tgt_val, ierror)
  call LAPI_XFER(hndl, rmw, ierror)
  call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
  call ft_eq8(long_old, 4000000000_8, 'LAPI_RMW_T, 64 bits')
  rmw%size = 16
  call LAPI_XFER(hndl, rmw, ierror)
  call ft_code(ierror, LAPI_ERR_OP_SZ, 'a wrong size')
  call LAPI_GFENCE(hndl, ierror)
  call ft_eq(word, 42, 'the variable')
  call ft_eq8(long, 1004000000000_8, 'the long variable')

  ! LAPI_PUTV_T and LAPI_GETV_T
  board = 0
  call LAPI_GFENCE(hndl, ierror)
  call LAPI_ADDRESS(mine(11), from(1), ierror)
  to(1) = boards(next) + 80
  len = 400
  org_vec%vec_type = LAPI_GEN_IOVECTOR
  org_vec%num_vecs = 1
  call LAPI_ADDRESS(from, org_vec%info, ierror)
  call LAPI_ADDRESS(len, org_vec%len, ierror)
  tgt_vec = org_vec
  call LAPI_ADDRESS(to, tgt_vec%info, ierror)
  sent = 0
  putv%Xfer_type = LAPI_PUTV_XFER
  putv%flags = USE_TGT_VEC_TYPE
  putv%tgt = next
  putv%shdlr = shdlr
  putv%sinfo = sent_at
  call LAPI_ADDRESS(org_vec, putv%org_vec, ierror)
  call LAPI_ADDRESS(tgt_vec, putv%tgt_vec, ierror)
  putv%tgt_cntr = counters(next)
  putv%org_cntr = org_at
  putv%cmpl_cntr = cmpl_at
  call LAPI_XFER(hndl, putv, ierror)
  call ft_ok(ierror, 'LAPI_PUTV_T')
  call wait_for_all()
  call ft_true(all(board(21:120) == [(10000 * last + i, i=11, 110)]), 'LAPI_PUTV_T')
  call ft_eq(sent(1), 1, 'the send completion handler')
  got = 0
  mine = 0
  getv%Xfer_type = LAPI_GETV_XFER
  getv%flags = USE_TGT_VEC_TYPE
  getv%tgt = next
  getv%org_vec = putv%org_vec
  getv%tgt_vec = putv%tgt_vec
  getv%tgt_cntr = LAPI_ADDR_NULL
  getv%org_cntr = org_at
  getv%chndlr = chndlr
  getv%cinfo = got_at
  call LAPI_XFER(hndl, getv, ierror)
  call ft_ok(ierror, 'LAPI_GETV_T')
  call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
  call ft_true(all(mine(11:110) == [(10000 * me + i, i=11, 110)]), 'LAPI_GETV_T')
  call LAPI_GFENCE(hndl, ierror)

  ! LAPI_AMV_T
  board = 0
  call LAPI_GFENCE(hndl, ierror)
  sent = 0
  header = [301, LAPI_GEN_IOVECTOR]
  amv%Xfer_type = LAPI_AMV_XFER
  amv%flags = 0
  amv%tgt = next
  call LAPI_ADDRESS(accept_vector, amv%hdr_hdl, ierror)
  call LAPI_ADDRESS(header, amv%uhdr, ierror)
  amv%uhdr_len = 8
  amv%shdlr = shdlr
  amv%sinfo = sent_at
  call LAPI_ADDRESS(org_vec, amv%org_vec, ierror)
  amv%tgt_cntr = counters(next)
  amv%org_cntr = org_at
  amv%cmpl_cntr = cmpl_at
  call LAPI_XFER(hndl, amv, ierror)
  call ft_ok(ierror, 'LAPI_AMV_T')
  call wait_for_all()
  call ft_true(all(board(301:400) == [(10000 * last + i, i=11, 110)]), 'LAPI_AMV_T')
  call ft_eq(errors(1), 0, 'no error so far')
  call LAPI_GFENCE(hndl, ierror)

  ! The same with a vector of an unknown type: the error handler of the target is called, the counters are incremented.
  header = [301, 7]
  call LAPI_XFER(hndl, amv, ierror)
  call ft_ok(ierror, 'LAPI_AMV_T')
  call wait_for_all()
  call ft_eq(errors(1), 1, 'the error handler')
  call ft_eq(errors(2), LAPI_ERR_TGT_VEC_TYPE, 'its error')
  call ft_eq(errors(3), AM_ERR, 'its type')
  call ft_eq(errors(4), me, 'its task')
  call ft_eq(errors(5), last, 'the sender')

  call LAPI_XFER(hndl, LAPI_ADDR_NULL, ierror)
  call ft_code(ierror, LAPI_ERR_XFER_CMD, 'no structure')
  call ft_done(hndl, me)

contains

  subroutine wait_for_all()
    call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
    call LAPI_WAITCNTR(hndl, cmpl, 1, left, ierror)
    call LAPI_WAITCNTR(hndl, tgt, 1, left, ierror)
    call LAPI_GFENCE(hndl, ierror)
  end subroutine wait_for_all

end program xfer
