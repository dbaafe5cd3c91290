! Gather/scatter programs: LAPI_UTIL with its structures, LAPI_AMDGSP_T, and a Fortran function that CONTROL calls. Each task
! works on the next one.

module state
  implicit none
  include 'lapif.h'
  integer, parameter :: n = 600
  integer :: board(2 * n), mine(2 * n), packed(n), calls
  integer(kind=LAPI_ADDR_TYPE) :: scatter
  type(LAPI_CNTR_T) :: tgt
end module state

! Adds the data that has arrived to the existing data; every argument is a reference.
function add_up(arrived, there, bytes, operand, operation) result(done)
  use state
  implicit none
  integer :: arrived(*), there(*), operand, operation, i
  integer(kind=LAPI_LONG_TYPE) :: bytes, done
  call ft_eq(operand, 11, 'the operand')
  call ft_eq(operation, 3, 'the operation')
  call ft_true(mod(bytes, 4_8) == 0, 'whole elements')
  do i = 1, int(bytes / 4)
     there(i) = there(i) + arrived(i)
  end do
  calls = calls + 1
  done = bytes
end function add_up

! Returns the program by which the data is scattered.
function accept_message(hndl, uhdr, uhdr_len, ret, comp_h, user_info) result(place)
  use state
  implicit none
  integer :: hndl, uhdr(*), uhdr_len, ierror
  type(LAPI_RETURN_INFO_T) :: ret
  integer(kind=LAPI_ADDR_TYPE) :: comp_h, user_info, place
  ret%dgsp_handle = scatter
  ret%bytes = ret%msg_len
  ret%ctl_flags = LAPI_DELIVER_MSG
  ret%ret_flags = LAPI_NORMAL
  comp_h = LAPI_ADDR_NULL
  call LAPI_ADDRESS(board, place, ierror)
end function accept_message

program dgsp
  use state
  implicit none
  integer :: hndl, me, tasks, next, last, ierror, i, left
  integer :: every_second(LAPI_DGSM_COPY_SIZE + LAPI_DGSM_ITERATE_SIZE)
  integer :: blocks(LAPI_DGSM_MCOPY_SIZE + LAPI_DGSM_MCOPY_BLOCK_SIZE + LAPI_DGSM_ITERATE_SIZE)
  integer :: controlled(LAPI_DGSM_CONTROL_SIZE + LAPI_DGSM_COPY_SIZE + LAPI_DGSM_ITERATE_SIZE)
  integer(kind=LAPI_ADDR_TYPE) :: address, counters(0:63), gather, two_blocks
  external :: accept_message, add_up
  integer(kind=LAPI_ADDR_TYPE) :: accept_message, add_up
  type(LAPI_DGSM_MCOPY_T) :: mcopy
  type(LAPI_DGSM_BLOCK_T) :: block
  type(LAPI_AMDGSP_T) :: am
  type(LAPI_PACK_DGSP_T) :: pack_up
  type(LAPI_UNPACK_DGSP_T) :: unpack_it
  type(LAPI_RESV_DGSP_T) :: more
  type(LAPI_DREF_DGSP_T) :: less
  type(LAPI_REG_DDM_T) :: function
  type(LAPI_THREAD_FUNC_T) :: lock
  type(LAPI_CNTR_T) :: org, cmpl
  common /counters/ org, cmpl

  call ft_init(hndl, me, tasks)
  call LAPI_SENV(hndl, ERROR_CHK, 1, ierror)
  next = mod(me + 1, tasks)
  last = mod(me + tasks - 1, tasks)
  calls = 0
  call LAPI_SETCNTR(hndl, tgt, 0, ierror)
  call LAPI_SETCNTR(hndl, org, 0, ierror)
  call LAPI_SETCNTR(hndl, cmpl, 0, ierror)
  call LAPI_ADDRESS(tgt, address, ierror)
  call LAPI_ADDRESS_INIT(hndl, address, counters, ierror)
  mine = [(10000 * me + i, i=1, 2 * n)]

  ! Every second integer.
  every_second(1:LAPI_DGSM_COPY_SIZE) = transfer(LAPI_DGSM_COPY_T(LAPI_DGSM_COPY, 0, 4_8, 0_8), every_second)
  every_second(LAPI_DGSM_COPY_SIZE + 1:) = &
    transfer(LAPI_DGSM_ITERATE_T(LAPI_DGSM_ITERATE, -LAPI_DGSM_COPY_SIZE), every_second)
  call register(every_second, size(every_second), LAPI_DGSM_SPARSE, 4_8, 8_8, 4_8, 4, gather)

  ! Two blocks of a record of five: the second, and the fourth and fifth.
  mcopy%opcode = LAPI_DGSM_MCOPY
  mcopy%count = 2
  mcopy%block(1) = LAPI_DGSM_BLOCK_T(4_8, 4_8)
  block = LAPI_DGSM_BLOCK_T(12_8, 8_8)
  blocks(1:LAPI_DGSM_MCOPY_SIZE) = transfer(mcopy, blocks)
  blocks(LAPI_DGSM_MCOPY_SIZE + 1:LAPI_DGSM_MCOPY_SIZE + LAPI_DGSM_MCOPY_BLOCK_SIZE) = transfer(block, blocks)
  blocks(LAPI_DGSM_MCOPY_SIZE + LAPI_DGSM_MCOPY_BLOCK_SIZE + 1:) = &
    transfer(LAPI_DGSM_ITERATE_T(LAPI_DGSM_ITERATE, -(LAPI_DGSM_MCOPY_SIZE + LAPI_DGSM_MCOPY_BLOCK_SIZE)), blocks)
  call register(blocks, size(blocks), LAPI_DGSM_SPARSE, 12_8, 20_8, 20_8, 0, two_blocks)

  ! Gathers into a buffer and scatters out of it.
  pack_up%Util_type = LAPI_DGSP_PACK
  pack_up%dgsp = two_blocks
  call LAPI_ADDRESS(mine, pack_up%in_buf, ierror)
  pack_up%bytes = 24
  call LAPI_ADDRESS(packed, pack_up%out_buf, ierror)
  pack_up%out_size = 4 * n
  pack_up%position = 0
  call LAPI_UTIL(hndl, pack_up, ierror)
  call ft_ok(ierror, 'LAPI_DGSP_PACK')
  call ft_eq8(pack_up%position, 24_8, 'LAPI_DGSP_PACK')
  call ft_true(all(packed(1:6) == 10000 * me + [2, 4, 5, 7, 9, 10]), 'LAPI_DGSP_PACK')
  board = 0
  unpack_it%Util_type = LAPI_DGSP_UNPACK
  unpack_it%dgsp = two_blocks
  call LAPI_ADDRESS(packed, unpack_it%in_buf, ierror)
  unpack_it%in_size = 24
  call LAPI_ADDRESS(board, unpack_it%out_buf, ierror)
  unpack_it%bytes = 24
  unpack_it%position = 0
  call LAPI_UTIL(hndl, unpack_it, ierror)
  call ft_ok(ierror, 'LAPI_DGSP_UNPACK')
  call ft_true(all(board(1:10) == [0, 1, 0, 1, 1, 0, 1, 0, 1, 1] * mine(1:10)), 'LAPI_DGSP_UNPACK')
  pack_up%out_size = 24
  call LAPI_UTIL(hndl, pack_up, ierror)
  call ft_code(ierror, LAPI_ERR_PACK_SZ, 'a buffer that is too small')

  ! References: the program exists as long as one exists.
  more = LAPI_RESV_DGSP_T(LAPI_RESERVE_DGSP, 0, two_blocks, 0, 0)
  call LAPI_UTIL(hndl, more, ierror)
  call ft_ok(ierror, 'LAPI_RESERVE_DGSP')
  less = LAPI_DREF_DGSP_T(LAPI_UNRESERVE_DGSP, 0, two_blocks, 0, 0)
  call LAPI_UTIL(hndl, less, ierror)
  call ft_ok(ierror, 'LAPI_UNRESERVE_DGSP')
  call LAPI_UTIL(hndl, less, ierror)
  call ft_ok(ierror, 'the last reference')
  call LAPI_UTIL(hndl, less, ierror)
  call ft_code(ierror, LAPI_ERR_DGSP_FREE, 'none is left')

  ! The function, and the program that passes all data to it.
  function%Util_type = LAPI_REG_DDM_FUNC
  call LAPI_ADDRESS(add_up, function%ddm_func, ierror)
  address = function%ddm_func
  call LAPI_UTIL(hndl, function, ierror)
  call ft_ok(ierror, 'LAPI_REG_DDM_FUNC')
  call ft_eq8(function%ddm_func, address, 'the structure is as it was')
  controlled(1:LAPI_DGSM_CONTROL_SIZE) = transfer(LAPI_DGSM_CONTROL_T(LAPI_DGSM_CONTROL, 3, 11), controlled)
  i = LAPI_DGSM_CONTROL_SIZE + LAPI_DGSM_COPY_SIZE
  controlled(LAPI_DGSM_CONTROL_SIZE + 1:i) = transfer(LAPI_DGSM_COPY_T(LAPI_DGSM_COPY, 0, 4_8, 0_8), controlled)
  controlled(i + 1:) = transfer(LAPI_DGSM_ITERATE_T(LAPI_DGSM_ITERATE, -i), controlled)
  call register(controlled, size(controlled), LAPI_DGSM_SPARSE, 4_8, 8_8, 4_8, 4, scatter)

  ! Every second integer of mine is added to every second one of the board.
  board = [(i, i=1, 2 * n)]
  call LAPI_GFENCE(hndl, ierror)
  am%Xfer_type = LAPI_DGSP_XFER
  am%flags = 0
  am%tgt = next
  call LAPI_ADDRESS(accept_message, am%hdr_hdl, ierror)
  am%uhdr = LAPI_ADDR_NULL
  am%uhdr_len = 0
  call LAPI_ADDRESS(mine, am%udata, ierror)
  am%udata_len = 4 * n
  am%shdlr = LAPI_ADDR_NULL
  am%sinfo = LAPI_ADDR_NULL
  am%tgt_cntr = counters(next)
  call LAPI_ADDRESS(org, am%org_cntr, ierror)
  call LAPI_ADDRESS(cmpl, am%cmpl_cntr, ierror)
  am%dgsp = gather
  am%status = 0
  call send('LAPI_AMDGSP_T')
  call ft_true(calls > 0, 'the function was called')
  call ft_true(all(board(1::2) == [(10000 * last + 2 * i, i=1, 2 * n, 2)]), 'the sums')
  call ft_true(all(board(2::2) == [(i, i=2, 2 * n, 2)]), 'what lies between')

  ! Without program at the target's side: LAPI_BYTE, predefined.
  scatter = LAPI_BYTE
  board = 0
  call LAPI_GFENCE(hndl, ierror)
  call send('LAPI_BYTE')
  call ft_true(all(board(1:n) == [(10000 * last + i, i=1, 2 * n, 2)]), 'LAPI_BYTE')

  ! The functions of the lock.
  lock%Util_type = LAPI_GET_THREAD_FUNC
  lock%mutex_lock = 0
  lock%cond_destroy = 0
  call LAPI_UTIL(hndl, lock, ierror)
  call ft_ok(ierror, 'LAPI_GET_THREAD_FUNC')
  call ft_true(lock%mutex_lock /= 0 .and. lock%cond_destroy /= 0, 'LAPI_GET_THREAD_FUNC')
  call LAPI_UTIL(hndl, LAPI_ADDR_NULL, ierror)
  call ft_code(ierror, LAPI_ERR_UTIL_CMD, 'no structure')
  call ft_done(hndl, me)

contains

  subroutine register(code, code_size, density, bytes, extent, rext, atom_size, handle)
    integer :: code(*)
    integer, intent(in) :: code_size, density, atom_size
    integer(kind=LAPI_LONG_TYPE), intent(in) :: bytes, extent, rext
    integer(kind=LAPI_ADDR_TYPE), intent(out) :: handle
    type(LAPI_DGSP_DESCR_T) :: descr
    type(LAPI_REG_DGSP_T) :: request
    call LAPI_ADDRESS(code, descr%code, ierror)
    descr%code_size = code_size
    descr%depth = 1
    descr%density = density
    descr%size = bytes
    descr%extent = extent
    descr%lext = 0
    descr%rext = rext
    descr%atom_size = atom_size
    request%Util_type = LAPI_REGISTER_DGSP
    call LAPI_ADDRESS(descr, request%idgsp, ierror)
    call LAPI_UTIL(hndl, request, ierror)
    call ft_ok(ierror, 'LAPI_REGISTER_DGSP')
    handle = request%dgsp_handle
  end subroutine register

  subroutine send(what)
    character(*), intent(in) :: what
    call LAPI_XFER(hndl, am, ierror)
    call ft_ok(ierror, what)
    call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
    call LAPI_WAITCNTR(hndl, cmpl, 1, left, ierror)
    call LAPI_WAITCNTR(hndl, tgt, 1, left, ierror)
    call LAPI_GFENCE(hndl, ierror)
  end subroutine send

end program dgsp
