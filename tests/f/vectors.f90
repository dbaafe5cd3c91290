! LAPI_PUTV and LAPI_GETV, their target's vector as a structure and as an address, and LAPI_AMSENDV with a vector from its
! header handler. Each task works on the next one.

module place
  implicit none
  include 'lapif.h'
  integer :: board(100), mine(100)
  integer(kind=LAPI_ADDR_TYPE) :: parts(2)
  integer(kind=LAPI_LONG_TYPE) :: lengths(2)
  type(LAPI_VEC_T) :: there
end module place

! A header handler for vectors returns the address of one.
function accept_vector(hndl, uhdr, uhdr_len, len_vec, comp_h, user_info) result(vector)
  use place
  implicit none
  integer :: hndl, uhdr(*), uhdr_len, ierror
  integer(kind=LAPI_LONG_TYPE) :: len_vec
  integer(kind=LAPI_ADDR_TYPE) :: comp_h, user_info, vector
  there%vec_type = LAPI_GEN_IOVECTOR
  there%num_vecs = 2
  call LAPI_ADDRESS(board(uhdr(1)), parts(1), ierror)
  call LAPI_ADDRESS(board(uhdr(2)), parts(2), ierror)
  lengths = [20_8, 40_8]
  call LAPI_ADDRESS(parts, there%info, ierror)
  call LAPI_ADDRESS(lengths, there%len, ierror)
  comp_h = LAPI_ADDR_NULL
  call LAPI_ADDRESS(there, vector, ierror)
end function accept_vector

program vectors
  use place
  implicit none
  integer :: hndl, me, tasks, next, last, ierror, i, left
  integer :: uhdr(2)
  integer(kind=LAPI_ADDR_TYPE) :: address, boards(0:63), counters(0:63), accept_vector
  external :: accept_vector
  integer(kind=LAPI_ADDR_TYPE) :: from(2), to(2), shape(3)
  integer(kind=LAPI_LONG_TYPE) :: len(2)
  type(LAPI_VEC_T) :: org_vec, tgt_vec
  type(LAPI_CNTR_T) :: tgt, org, cmpl
  common /counter/ tgt

  call ft_init(hndl, me, tasks)
  next = mod(me + 1, tasks)
  last = mod(me + tasks - 1, tasks)
  call LAPI_SETCNTR(hndl, tgt, 0, ierror)
  call LAPI_SETCNTR(hndl, org, 0, ierror)
  call LAPI_SETCNTR(hndl, cmpl, 0, ierror)
  board = 0
  mine = [(1000 * me + i, i=1, 100)]
  call LAPI_ADDRESS(board, address, ierror)
  call LAPI_ADDRESS_INIT(hndl, address, boards, ierror)
  call LAPI_ADDRESS(tgt, address, ierror)
  call LAPI_ADDRESS_INIT(hndl, address, counters, ierror)

  ! Elements 1 to 5 and 21 to 30 of mine go to 51 to 55 and 71 to 80 of the board.
  len = [20_8, 40_8]
  call LAPI_ADDRESS(mine(1), from(1), ierror)
  call LAPI_ADDRESS(mine(21), from(2), ierror)
  to = [boards(next) + 4 * 50, boards(next) + 4 * 70]
  org_vec%vec_type = LAPI_GEN_IOVECTOR
  org_vec%num_vecs = 2
  call LAPI_ADDRESS(from, org_vec%info, ierror)
  call LAPI_ADDRESS(len, org_vec%len, ierror)
  tgt_vec = org_vec
  call LAPI_ADDRESS(to, tgt_vec%info, ierror)

  call LAPI_PUTV(hndl, next, tgt_vec, org_vec, counters(next), org, cmpl, ierror)
  call ft_ok(ierror, 'LAPI_PUTV')
  call came('LAPI_PUTV', 50, 70)

  call LAPI_ADDRESS(tgt_vec, address, ierror)
  call LAPI_PUTV(hndl, next, address, org_vec, counters(next), org, cmpl, ierror)
  call ft_ok(ierror, 'LAPI_PUTV with an address')
  call came('LAPI_PUTV with an address', 50, 70)

  ! Back from the board, in the same ways.
  board = [(5000 * me + i, i=1, 100)]
  call LAPI_GFENCE(hndl, ierror)
  call LAPI_GETV(hndl, next, tgt_vec, org_vec, counters(next), org, ierror)
  call ft_ok(ierror, 'LAPI_GETV')
  call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
  call LAPI_WAITCNTR(hndl, tgt, 1, left, ierror)
  call ft_eq(mine(1), 5000 * next + 51, 'LAPI_GETV')
  call ft_eq(mine(30), 5000 * next + 80, 'LAPI_GETV')
  call ft_eq(mine(6), 1000 * me + 6, 'LAPI_GETV')
  mine = 0
  call LAPI_GETV(hndl, next, address, org_vec, LAPI_ADDR_NULL, org, ierror)
  call ft_ok(ierror, 'LAPI_GETV with an address')
  call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
  call ft_eq(mine(5), 5000 * next + 55, 'LAPI_GETV with an address')
  call ft_eq(mine(6), 0, 'LAPI_GETV with an address')

  ! A strided vector: 10 elements, each second one, to each third one.
  call LAPI_GFENCE(hndl, ierror)
  mine = [(1000 * me + i, i=1, 100)]
  board = 0
  call LAPI_GFENCE(hndl, ierror)
  call strided(org_vec, from(1), 8_8)
  call LAPI_ADDRESS(shape, org_vec%info, ierror)
  call strided_there()
  call LAPI_GFENCE(hndl, ierror)
  do i = 0, 9
     call ft_eq(board(1 + 3 * i), 1000 * last + 1 + 2 * i, 'strided')
     call ft_eq(board(2 + 3 * i), 0, 'strided')
  end do

  ! Errors.
  call LAPI_PUTV(hndl, next, LAPI_ADDR_NULL, org_vec, %val(0_8), org, cmpl, ierror)
  call ft_code(ierror, LAPI_ERR_TGT_VEC_NULL, 'no vector at the target')
  call LAPI_PUTV(hndl, next, tgt_vec, LAPI_ADDR_NULL, %val(0_8), org, cmpl, ierror)
  call ft_code(ierror, LAPI_ERR_ORG_VEC_NULL, 'no vector at the origin')
  tgt_vec%vec_type = 7
  call LAPI_GETV(hndl, next, tgt_vec, org_vec, %val(0_8), org, ierror)
  call ft_code(ierror, LAPI_ERR_TGT_VEC_TYPE, 'a wrong type')

  ! An active message; the handler returns a vector.
  call LAPI_GFENCE(hndl, ierror)
  board = 0
  call LAPI_GFENCE(hndl, ierror)
  org_vec%vec_type = LAPI_GEN_IOVECTOR
  org_vec%num_vecs = 2
  call LAPI_ADDRESS(from, org_vec%info, ierror)
  call LAPI_ADDRESS(len, org_vec%len, ierror)
  uhdr = [11, 31]
  call LAPI_AMSENDV(hndl, next, accept_vector, uhdr, 8, org_vec, counters(next), org, cmpl, ierror)
  call ft_ok(ierror, 'LAPI_AMSENDV')
  call came('LAPI_AMSENDV', 10, 30)
  call LAPI_ADDRESS(accept_vector, address, ierror)
  call LAPI_AMSENDV(hndl, next, address, uhdr, 8, org_vec, counters(next), org, cmpl, ierror)
  call ft_ok(ierror, 'LAPI_AMSENDV of an address')
  call came('LAPI_AMSENDV of an address', 10, 30)
  call ft_done(hndl, me)

contains

  ! Waits for all three counters, and checks the board: 5 elements after `first`, 10 after `second`.
  subroutine came(what, first, second)
    character(*), intent(in) :: what
    integer, intent(in) :: first, second
    integer :: k
    call LAPI_WAITCNTR(hndl, org, 1, left, ierror)
    call LAPI_WAITCNTR(hndl, cmpl, 1, left, ierror)
    call LAPI_WAITCNTR(hndl, tgt, 1, left, ierror)
    do k = 1, 5
       call ft_eq(board(first + k), 1000 * last + k, what)
    end do
    do k = 1, 10
       call ft_eq(board(second + k), 1000 * last + 20 + k, what)
    end do
    call ft_eq(count(board /= 0), 15, what)
    call LAPI_GFENCE(hndl, ierror)
    board = 0
    call LAPI_GFENCE(hndl, ierror)
  end subroutine came

  ! Base, length of a block, and stride, in bytes; there is no array of lengths.
  subroutine strided(vec, base, stride)
    type(LAPI_VEC_T), intent(out) :: vec
    integer(kind=LAPI_ADDR_TYPE), intent(in) :: base
    integer(kind=8), intent(in) :: stride
    shape = [base, 4_8, stride]
    vec%vec_type = LAPI_GEN_STRIDED_XFER
    vec%num_vecs = 10
    vec%len = LAPI_ADDR_NULL
  end subroutine strided

  subroutine strided_there()
    integer(kind=LAPI_ADDR_TYPE) :: shape_there(3)
    type(LAPI_VEC_T) :: vec
    shape_there = [boards(next), 4_8, 12_8]
    vec%vec_type = LAPI_GEN_STRIDED_XFER
    vec%num_vecs = 10
    vec%len = LAPI_ADDR_NULL
    call LAPI_ADDRESS(shape_there, vec%info, ierror)
    call LAPI_PUTV(hndl, next, vec, org_vec, LAPI_ADDR_NULL, LAPI_ADDR_NULL, cmpl, ierror)
    call ft_ok(ierror, 'LAPI_PUTV of a strided vector')
    call LAPI_WAITCNTR(hndl, cmpl, 1, left, ierror)
  end subroutine strided_there

end program vectors
