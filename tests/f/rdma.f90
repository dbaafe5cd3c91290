! LAPI_UTIL with the structures of RDMA, and LAPI_XFER with LAPI_HWXFER_T. Each task works on the next one; both hold one
! context of the other (MP_RDMA_COUNT=1).

module state
  implicit none
  include 'lapif.h'
  integer, parameter :: n = 20000
  integer :: mine(n), board(n), sent(3)
  type(LAPI_CNTR_T) :: org
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

program rdma
  use state
  implicit none
  external :: all_sent
  integer :: hndl, me, tasks, next, last, ierror, left, i
  integer(kind=LAPI_LONG_LONG_TYPE) :: boards(0:63)
  type(LAPI_GET_PVO_T) :: memory, window, wrong
  type(LAPI_REMOTE_CXT_T) :: context, second
  type(LAPI_HWXFER_T) :: transfer

  call ft_init(hndl, me, tasks)
  next = mod(me + 1, tasks)
  last = mod(me + tasks - 1, tasks)
  mine = [(100000 * me + i, i=1, n)]
  board = -1
  call LAPI_SETCNTR(hndl, org, 0, ierror)

  ! LAPI_GET_PVO_T
  memory%Util_type = LAPI_XLATE_ADDRESS
  memory%length = 4 * n
  memory%usr_pvo = 0
  memory%operation = LAPI_RDMA_ACQUIRE
  window = memory
  call LAPI_ADDRESS(mine, memory%address, ierror)
  call LAPI_UTIL(hndl, memory, ierror)
  call ft_ok(ierror, 'LAPI_GET_PVO_T')
  call LAPI_ADDRESS(board, window%address, ierror)
  call LAPI_UTIL(hndl, window, ierror)
  call ft_ok(ierror, 'LAPI_GET_PVO_T')
  call ft_true(memory%usr_pvo /= 0 .and. window%usr_pvo /= memory%usr_pvo, 'registrations have names of their own')
  wrong = memory
  wrong%length = 0
  call LAPI_UTIL(hndl, wrong, ierror)
  call ft_code(ierror, LAPI_ERR_XLATE_FAILED, 'no bytes')
  wrong = memory
  wrong%operation = LAPI_RDMA_RELEASE + 1
  call LAPI_UTIL(hndl, wrong, ierror)
  call ft_code(ierror, LAPI_ERR_UTIL_CMD, 'neither operation')
  call LAPI_ADDRESS_INIT64(hndl, window%usr_pvo, boards, ierror)
  call ft_eq8(boards(me), window%usr_pvo, 'the registration of this task')

  ! LAPI_REMOTE_CXT_T
  context%Util_type = LAPI_REMOTE_RCXT
  context%operation = LAPI_RDMA_ACQUIRE
  context%dest = me
  context%usr_rcxt = 0
  call LAPI_UTIL(hndl, context, ierror)
  call ft_code(ierror, LAPI_ERR_TGT, 'a context of this task')
  context%dest = next
  second = context
  call LAPI_UTIL(hndl, context, ierror)
  call ft_ok(ierror, 'LAPI_REMOTE_CXT_T')
  call ft_true(context%usr_rcxt /= 0, 'the number of the context')
  call LAPI_UTIL(hndl, second, ierror)
  call ft_code(ierror, LAPI_ERR_NO_RDMA_RESOURCE, 'more contexts than MP_RDMA_COUNT')
  call LAPI_GFENCE(hndl, ierror)

  ! LAPI_HWXFER_T: a put of all but the first and the last hundred integers, with a counter and a handler
  sent = 0
  transfer%Xfer_type = LAPI_RDMA_XFER
  transfer%tgt = next
  transfer%op = LAPI_RDMA_PUT
  transfer%rdma_tag = 7
  transfer%remote_cxt = context%usr_rcxt
  transfer%src_pvo = memory%usr_pvo
  transfer%tgt_pvo = boards(next)
  transfer%src_offset = 400
  transfer%tgt_offset = 404
  transfer%len = 4 * n - 800
  call LAPI_ADDRESS(org, transfer%org_cntr, ierror)
  call LAPI_ADDRESS(all_sent, transfer%shdlr, ierror)
  call LAPI_ADDRESS(sent, transfer%sinfo, ierror)
  call LAPI_XFER(hndl, transfer, ierror)
  call ft_ok(ierror, 'LAPI_HWXFER_T')
  call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
  do while (sent(1) == 0)
     call LAPI_PROBE(hndl, ierror)
  end do
  call LAPI_GFENCE(hndl, ierror)
  call ft_true(all(board(102:n - 99) == [(100000 * last + i, i=101, n - 100)]), 'the data of the put')
  call ft_true(all(board(1:101) == -1) .and. all(board(n - 98:n) == -1), 'what lies beside it')
  call ft_eq(sent(1), 1, 'the handler')
  call ft_eq(sent(2), next, 'the task in its information')
  call ft_eq(sent(3), LAPI_SUCCESS, 'the reason in its information')
  call LAPI_GFENCE(hndl, ierror)

  ! A get of what was put, by the counter alone
  mine = 0
  transfer%op = LAPI_RDMA_GET
  transfer%src_offset = 0
  transfer%len = 4000
  transfer%shdlr = LAPI_ADDR_NULL
  call LAPI_XFER(hndl, transfer, ierror)
  call ft_ok(ierror, 'LAPI_HWXFER_T')
  call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
  call ft_true(all(mine(1:1000) == [(100000 * me + i, i=101, 1100)]), 'the data of the get')
  call ft_eq(sent(1), 1, 'no handler')
  transfer%len = 4 * n + 1
  call LAPI_XFER(hndl, transfer, ierror)
  call ft_code(ierror, LAPI_ERR_OFFSET_LEN, 'beyond the registered memory')
  transfer%src_pvo = 0
  call LAPI_XFER(hndl, transfer, ierror)
  call ft_code(ierror, LAPI_ERR_SRC_BUFHNDL, 'memory that is not registered')
  call LAPI_GFENCE(hndl, ierror)

  memory%operation = LAPI_RDMA_RELEASE
  call LAPI_UTIL(hndl, memory, ierror)
  call ft_ok(ierror, 'LAPI_GET_PVO_T')
  call LAPI_UTIL(hndl, memory, ierror)
  call ft_code(ierror, LAPI_ERR_SRC_BUFHNDL, 'memory that is released')
  context%operation = LAPI_RDMA_RELEASE
  call LAPI_UTIL(hndl, context, ierror)
  call ft_ok(ierror, 'LAPI_REMOTE_CXT_T')
  call LAPI_UTIL(hndl, context, ierror)
  call ft_code(ierror, LAPI_ERR_TGT_CONTEXT, 'a context that is released')
  call ft_done(hndl, me)
end program rdma
