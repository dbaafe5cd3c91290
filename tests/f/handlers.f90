! Active messages whose handlers are Fortran's: given as a procedure, as an address, by an index; with and without data;
! internal procedures; the fields of the enhanced interface. Each task sends to the next one.

module inbox
  implicit none
  include 'lapif.h'
  integer, parameter :: n = 5000
  integer :: data(n), head(4), header_length, seen_handle, src
  integer(kind=LAPI_LONG_TYPE) :: message_length
  integer :: completed(3)
  type(LAPI_CNTR_T) :: arrived
end module inbox

! A header handler: a function whose result is as wide as an address.
function accept_message(hndl, uhdr, uhdr_len, msg_len, comp_h, user_info) result(place)
  use inbox
  implicit none
  integer :: hndl, uhdr(*), uhdr_len
  type(LAPI_RETURN_INFO_T) :: msg_len
  integer(kind=LAPI_ADDR_TYPE) :: comp_h, user_info, place
  external :: complete
  integer :: ierror
  seen_handle = hndl
  header_length = uhdr_len
  head(1:uhdr_len / 4) = uhdr(1:uhdr_len / 4)
  message_length = msg_len%msg_len
  src = msg_len%src
  call LAPI_ADDRESS(complete, comp_h, ierror)
  call LAPI_ADDRESS(completed, user_info, ierror)
  call LAPI_ADDRESS(data, place, ierror)
end function accept_message

! The completion handler that the one above names.
subroutine complete(hndl, info)
  use inbox
  implicit none
  integer :: hndl, info(3), ierror, me
  call LAPI_QENV(hndl, TASK_ID, me, ierror)
  call ft_ok(ierror, 'LAPI_QENV in a completion handler')
  info(1) = info(1) + 1
  info(2) = me
  info(3) = data(n)
end subroutine complete

! A header handler that takes no data.
function count_message(hndl, uhdr, uhdr_len, msg_len, comp_h, user_info) result(place)
  use inbox
  implicit none
  integer :: hndl, uhdr(*), uhdr_len
  integer(kind=LAPI_LONG_TYPE) :: msg_len
  integer(kind=LAPI_ADDR_TYPE) :: comp_h, user_info, place
  completed(1) = completed(1) + 1
  comp_h = LAPI_ADDR_NULL
  place = LAPI_ADDR_NULL
end function count_message

program handlers
  use inbox
  implicit none
  integer :: hndl, me, tasks, next, last, ierror, i, left, letter(n), uhdr(4), counted
  integer(kind=LAPI_ADDR_TYPE) :: accept_message, count_message, address, index, counters(0:63)
  external :: accept_message, count_message
  type(LAPI_CNTR_T) :: org, cmpl

  call ft_init(hndl, me, tasks)
  call LAPI_SENV(hndl, ERROR_CHK, 1, ierror)
  next = mod(me + 1, tasks)
  last = mod(me + tasks - 1, tasks)
  completed = 0
  call LAPI_SETCNTR(hndl, org, 0, ierror)
  call LAPI_SETCNTR(hndl, cmpl, 0, ierror)
  call LAPI_SETCNTR(hndl, arrived, 0, ierror)
  call LAPI_ADDRESS(arrived, address, ierror)
  call LAPI_ADDRESS_INIT(hndl, address, counters, ierror)
  uhdr = [1, 2, 3, 1000 + me]
  letter = [(10000 * me + i, i=1, n)]

  ! The procedure itself.
  call LAPI_AMSEND(hndl, next, accept_message, uhdr, 16, letter, int(4 * n, LAPI_LONG_TYPE), counters(next), org, cmpl, &
                   ierror)
  call ft_ok(ierror, 'LAPI_AMSEND of a procedure')
  call all_is_there('a procedure', 1)

  ! Its address.
  call LAPI_ADDRESS(accept_message, address, ierror)
  call LAPI_AMSEND(hndl, next, address, uhdr, 16, letter, int(4 * n, LAPI_LONG_TYPE), counters(next), org, cmpl, ierror)
  call ft_ok(ierror, 'LAPI_AMSEND of an address')
  call all_is_there('an address', 2)

  ! An index, in a variable and as a constant.
  call LAPI_ADDR_SET(hndl, address, 9, ierror)
  call LAPI_GFENCE(hndl, ierror)
  index = 9
  call LAPI_AMSEND(hndl, next, index, uhdr, 16, letter, int(4 * n, LAPI_LONG_TYPE), counters(next), org, cmpl, ierror)
  call ft_ok(ierror, 'LAPI_AMSEND of an index')
  call all_is_there('an index', 3)
  call LAPI_AMSEND(hndl, next, 9_8, uhdr, 16, letter, int(4 * n, LAPI_LONG_TYPE), counters(next), org, cmpl, ierror)
  call ft_ok(ierror, 'LAPI_AMSEND of a constant')
  call all_is_there('a constant', 4)

  ! Neither header nor data, and no counters.
  call LAPI_GFENCE(hndl, ierror)
  completed = 0
  call LAPI_GFENCE(hndl, ierror)
  call LAPI_AMSEND(hndl, next, count_message, LAPI_ADDR_NULL, 0, LAPI_ADDR_NULL, 0_8, LAPI_ADDR_NULL, LAPI_ADDR_NULL, &
                   LAPI_ADDR_NULL, ierror)
  call ft_ok(ierror, 'LAPI_AMSEND of nothing')
  call LAPI_AMSEND(hndl, next, count_message, %val(0_8), 0, %val(0_8), 0_8, %val(0_8), %val(0_8), cmpl, ierror)
  call ft_ok(ierror, 'LAPI_AMSEND of nothing by value')
  call LAPI_WAITCNTR(hndl, cmpl, 1, left, ierror)
  call LAPI_GFENCE(hndl, ierror)
  call ft_eq(completed(1), 2, 'messages of nothing')

  ! Errors.
  call LAPI_AMSEND(hndl, next, LAPI_ADDR_NULL, uhdr, 16, letter, 4_8, %val(0_8), org, cmpl, ierror)
  call ft_code(ierror, LAPI_ERR_HDR_HNDLR_NULL, 'no handler')
  call LAPI_AMSEND(hndl, next, %val(0_8), uhdr, 16, letter, 4_8, %val(0_8), org, cmpl, ierror)
  call ft_code(ierror, LAPI_ERR_HDR_HNDLR_NULL, 'no handler by value')
  call LAPI_AMSEND(hndl, next, count_message, LAPI_ADDR_NULL, 16, letter, 4_8, %val(0_8), org, cmpl, ierror)
  call ft_code(ierror, LAPI_ERR_UHDR_NULL, 'no header')
  call LAPI_AMSEND(hndl, next, count_message, uhdr, 16, LAPI_ADDR_NULL, 4_8, %val(0_8), org, cmpl, ierror)
  call ft_code(ierror, LAPI_ERR_ORG_ADDR_NULL, 'no data')

  ! An internal procedure, which changes a variable of its host: the target is the task itself, because such a procedure has its
  ! address only as long as its host runs, and only there.
  counted = 0
  call LAPI_AMSEND(hndl, me, internal, uhdr, 16, LAPI_ADDR_NULL, 0_8, %val(0_8), %val(0_8), cmpl, ierror)
  call ft_ok(ierror, 'LAPI_AMSEND of an internal procedure')
  call LAPI_WAITCNTR(hndl, cmpl, 1, left, ierror)
  call ft_eq(counted, 16, 'the internal procedure')

  call ft_done(hndl, me)

contains

  ! Waits for the message from the last task, checks it, and lets the others do so.
  subroutine all_is_there(what, times)
    character(*), intent(in) :: what
    integer, intent(in) :: times
    integer :: k
    call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
    call LAPI_WAITCNTR(hndl, cmpl, 1, left, ierror)
    call LAPI_WAITCNTR(hndl, arrived, 1, left, ierror)
    do k = 1, n
       call ft_eq(data(k), 10000 * last + k, what)
    end do
    call ft_eq(seen_handle, hndl, 'the handle in a handler')
    call ft_eq(header_length, 16, 'the length of the header')
    call ft_eq(head(4), 1000 + last, 'the header')
    call ft_eq8(message_length, int(4 * n, 8), 'the length of the message')
    call ft_eq(src, last, 'the sender')
    call ft_eq(completed(1), times, 'the completion handler')
    call ft_eq(completed(2), me, 'the handle in the completion handler')
    call ft_eq(completed(3), 10000 * last + n, 'the data in the completion handler')
    call LAPI_GFENCE(hndl, ierror)
    data = 0
    call LAPI_GFENCE(hndl, ierror)
  end subroutine all_is_there

  function internal(hndl, uhdr, uhdr_len, msg_len, comp_h, user_info) result(place)
    integer :: hndl, uhdr(*), uhdr_len
    integer(kind=LAPI_LONG_TYPE) :: msg_len
    integer(kind=LAPI_ADDR_TYPE) :: comp_h, user_info, place
    counted = counted + uhdr_len
    comp_h = 0
    place = 0
  end function internal

end program handlers
