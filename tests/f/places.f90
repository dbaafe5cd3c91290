! Calls from known lines: each task puts three times from one line and once from another, and fences by each spelling
! of the call, in C (places.c).
program places
  implicit none
  include 'lapif.h'
  integer :: handle, me, to, tasks, ierror, i
  integer(kind=LAPI_ADDR_TYPE) :: own, boards(0:63)
  integer(kind=LAPI_LONG_TYPE) :: length
  integer :: board(4), mine(4)
  common /shared/ board
  call ft_init(handle, me, tasks)
  call LAPI_ADDRESS(board, own, ierror)
  call LAPI_ADDRESS_INIT(handle, own, boards, ierror)
  mine = me
  to = mod(me + 1, tasks)
  length = 16
  do i = 1, 3
     call LAPI_PUT(handle, to, length, boards(to), mine, LAPI_ADDR_NULL, LAPI_ADDR_NULL, LAPI_ADDR_NULL, ierror) ! thrice
     call ft_ok(ierror, 'LAPI_PUT')
  end do
  call once
  call spelled(handle)
  call LAPI_GFENCE(handle, ierror) ! all
  call ft_eq(board(4), mod(me + tasks - 1, tasks), 'LAPI_PUT')
  call ft_done(handle, me)
contains
  subroutine once
    call LAPI_PUT(handle, to, length, boards(to), mine, LAPI_ADDR_NULL, LAPI_ADDR_NULL, LAPI_ADDR_NULL, ierror) ! once
    call ft_ok(ierror, 'LAPI_PUT')
  end subroutine once
end program places
