! The module lapi, from its source: every call has an interface, and arguments of any type are allowed where C has void *.
include 'lapi.f90'

module state
  use lapi
  implicit none
  real(8) :: board(50), mine(50)
  integer :: word, old
  type(LAPI_CNTR_T) :: tgt, org, cmpl
end module state

program modern
  use state
  implicit none
  integer :: hndl, me, tasks, next, last, ierror, i, left, list(1), status(1)
  integer(kind=LAPI_ADDR_TYPE) :: address, boards(0:63), counters(0:63), words(0:63), place(1), there(1)
  integer(kind=LAPI_LONG_TYPE) :: lengths(1)
  type(LAPI_INFO_T) :: info
  type(LAPI_PUT_T) :: put
  type(LAPI_VEC_T) :: org_vec, tgt_vec
  type(LAPI_MSG_INFO_T) :: seen
  character(160) :: text
  character :: letters(LAPI_MAX_ERR_STRING)

  info = LAPI_INFO_T(0, LAST_LIB, 0, 0, 0, 0, 0, 0, 0, 0)
  call LAPI_INIT(hndl, info, ierror)
  call ft_ok(ierror, 'LAPI_INIT')
  call LAPI_QENV(hndl, TASK_ID, me, ierror)
  call LAPI_QENV(hndl, NUM_TASKS, tasks, ierror)
  call LAPI_SENV(hndl, ERROR_CHK, 1, ierror)
  call LAPI_MSG_STRING(LAPI_ERR_TGT, text, ierror)
  call ft_true(index(text, 'LAPI_ERR_TGT') > 0 .and. index(text, char(0)) == 0, text)
  call LAPI_MSG_STRING(LAPI_ERR_TGT, letters, ierror)
  call ft_true(all(letters(1:12) == [(text(i:i), i=1, 12)]) .and. letters(LAPI_MAX_ERR_STRING) == ' ', text)
  next = mod(me + 1, tasks)
  last = mod(me + tasks - 1, tasks)
  mine = [(me + i / 8d0, i=1, 50)]
  word = me
  call LAPI_SETCNTR(hndl, tgt, 0, ierror)
  call LAPI_SETCNTR(hndl, org, 0, ierror)
  call LAPI_SETCNTR(hndl, cmpl, 0, ierror)
  call LAPI_ADDRESS(board, address, ierror)
  call LAPI_ADDRESS_INIT(hndl, address, boards, ierror)
  call LAPI_ADDRESS(tgt, address, ierror)
  call LAPI_ADDRESS_INIT(hndl, address, counters, ierror)
  call LAPI_ADDRESS(word, address, ierror)
  call LAPI_ADDRESS_INIT(hndl, address, words, ierror)

  call LAPI_PUT(hndl, next, 400_8, boards(next), mine, counters(next), org, LAPI_ADDR_NULL, ierror)
  call ft_ok(ierror, 'LAPI_PUT')
  call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
  call LAPI_WAITCNTR(hndl, tgt, 1, LAPI_ADDR_NULL, ierror)
  call ft_true(all(board == [(last + i / 8d0, i=1, 50)]), 'LAPI_PUT')
  call LAPI_GFENCE(hndl, ierror)
  call LAPI_GET(hndl, next, 8_8, boards(next) + 8, mine(50), LAPI_ADDR_NULL, org, ierror)
  call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
  call ft_true(mine(50) == me + 0.25d0, 'LAPI_GET')
  call LAPI_RMW(hndl, SWAP, next, words(next), -5, old, org, ierror)
  call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
  call ft_eq(old, next, 'LAPI_RMW')

  put%Xfer_type = LAPI_PUT_XFER
  put%flags = 0
  put%tgt = next
  put%tgt_addr = boards(next) + 80
  call LAPI_ADDRESS(mine(50), put%org_addr, ierror)
  put%len = 8
  put%shdlr = 0
  put%sinfo = 0
  put%tgt_cntr = 0
  put%org_cntr = 0
  call LAPI_ADDRESS(cmpl, put%cmpl_cntr, ierror)
  call LAPI_XFER(hndl, put, ierror)
  call LAPI_NOPOLL_WAIT(hndl, cmpl, 1, left, ierror)
  call ft_ok(ierror, 'LAPI_NOPOLL_WAIT')
  call LAPI_GFENCE(hndl, ierror)
  call ft_true(board(11) == last + 0.25d0, 'LAPI_XFER')

  call LAPI_ADDRESS(mine(1), place(1), ierror)
  there = boards(next) + 16
  lengths = 24
  org_vec%vec_type = LAPI_GEN_IOVECTOR
  org_vec%num_vecs = 1
  call LAPI_ADDRESS(place, org_vec%info, ierror)
  call LAPI_ADDRESS(lengths, org_vec%len, ierror)
  tgt_vec = org_vec
  call LAPI_ADDRESS(there, tgt_vec%info, ierror)
  call LAPI_PUTV(hndl, next, tgt_vec, org_vec, LAPI_ADDR_NULL, LAPI_ADDR_NULL, cmpl, ierror)
  call ft_ok(ierror, 'LAPI_PUTV')
  call LAPI_WAITCNTR(hndl, cmpl, 1, left, ierror)
  call LAPI_GFENCE(hndl, ierror)
  call ft_true(all(board(3:5) == [(last + i / 8d0, i=1, 3)]), 'LAPI_PUTV')

  list = next
  call LAPI_SETCNTR_WSTATUS(hndl, cmpl, 1, list, status, ierror)
  call ft_eq(status(1), LAPI_MSG_INITIAL, 'LAPI_SETCNTR_WSTATUS')
  call LAPI_GETCNTR(hndl, cmpl, left, ierror)
  call ft_eq(left, 0, 'LAPI_GETCNTR')
  call LAPI_SETCNTR(hndl, cmpl, 5, ierror)
  call LAPI_SETCNTR_WSTATUS(hndl, cmpl, 0, LAPI_ADDR_NULL, LAPI_ADDR_NULL, ierror)
  call ft_ok(ierror, 'LAPI_SETCNTR_WSTATUS without a list')
  call LAPI_GETCNTR(hndl, cmpl, left, ierror)
  call ft_eq(left, 0, 'LAPI_SETCNTR_WSTATUS without a list')
  call LAPI_MSGPOLL(hndl, 0, seen, ierror)
  call LAPI_PROBE(hndl, ierror)
  call LAPI_FENCE(hndl, ierror)
  call ft_ok(ierror, 'LAPI_FENCE')
  call ft_done(hndl, me)
end program modern
