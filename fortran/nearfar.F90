! Arrays in near (fast, small) or far (large, slower) memory, for Fortran 2008 (tried with gfortran):
!
!     use nearfar
!     real(real64), pointer, contiguous :: psi(:,:)       ! CONTIGUOUS is not needed, but makes for faster code
!     call nf_allocate(psi, [n, m])                       ! near memory; far: tier=nf_far
!     call nf_deallocate(psi)
!
! nf_allocate(pointer, shape [, tier] [, stat] [, lower])
!     pointer  any rank from 1 to 7 of real and complex (32, 64 bits), integer (8 to 64 bits), default logical, logical(c_bool)
!     shape    an integer array with an extent per rank, or one integer for rank 1; default integers or integer(int64)
!     tier     nf_near (default) or nf_far
!     stat     0, or an error number; without it a failure stops the program, as for ALLOCATE
!     lower    the lower bounds, like shape; 1 by default
! nf_deallocate(pointer [, stat])        gives the memory back and nullifies the pointer. Only for pointers of nf_allocate.
! nf_where(array, near [, far] [, absent])   integer(int64): bytes from the first to the last element that lie in near and in far
!                                            now, and those never touched. Any array with the TARGET or POINTER attribute.
! nf_left(tier)      integer(int64): bytes that are left of a tier; -1 when that is not known
! nf_total(tier)     integer(int64): bytes that a tier has; -1 when that is not known
! nf_tiers()         2 when near and far are different memories, 1 when the machine has one only; -1 when they were misnamed
! nf_describe()      what near and far are, in one line
!
! The memory is not initialised, as with ALLOCATE. A pointer is not deallocated by itself at the end of a scope. What near and far
! are is said in nearfar.h. Compile this file with the compiler of the program, which preprocesses it (as
! it does all .F90), and link with -lnearfar. Three .inc files lie beside it.
module nearfar
  use, intrinsic :: iso_c_binding, only: c_ptr, c_int, c_size_t, c_int64_t, c_char, c_bool, c_intptr_t, c_null_ptr, c_loc, &
    c_f_pointer
  use, intrinsic :: iso_fortran_env, only: real32, real64, int8, int16, int32, int64, error_unit
  implicit none
  private

  integer(c_int), parameter, public :: nf_near = 0_c_int, nf_far = 1_c_int
  public :: nf_allocate, nf_deallocate, nf_where, nf_left, nf_total, nf_tiers, nf_describe

  ! struct nearfar_where and struct nearfar_capacity of nearfar.h
  type, bind(C) :: where_t
    integer(c_int64_t) :: near_bytes = 0, far_bytes = 0, absent_bytes = 0, unknown_bytes = 0, reserved(4) = 0
  end type where_t
  type, bind(C) :: capacity_t
    integer(c_int64_t) :: total_bytes = 0, free_bytes = 0, used_bytes = 0, reserved(5) = 0
  end type capacity_t

  interface
    function c_memalign(block, align, size, tier) bind(C, name="nearfar_posix_memalign") result(why)
      import :: c_ptr, c_size_t, c_int
      type(c_ptr), intent(out) :: block
      integer(c_size_t), value :: align, size
      integer(c_int), value :: tier
      integer(c_int) :: why
    end function c_memalign
    subroutine c_free(block) bind(C, name="nearfar_free")
      import :: c_ptr
      type(c_ptr), value :: block
    end subroutine c_free
    function c_where(start, len, found) bind(C, name="nearfar_where") result(failed)
      import :: c_ptr, c_size_t, c_int, where_t
      type(c_ptr), value :: start
      integer(c_size_t), value :: len
      type(where_t), intent(out) :: found
      integer(c_int) :: failed
    end function c_where
    function c_capacity(tier, found) bind(C, name="nearfar_capacity") result(failed)
      import :: c_int, capacity_t
      integer(c_int), value :: tier
      type(capacity_t), intent(out) :: found
      integer(c_int) :: failed
    end function c_capacity
    function c_tiers() bind(C, name="nearfar_tiers") result(tiers)
      import :: c_int
      integer(c_int) :: tiers
    end function c_tiers
    function c_describe() bind(C, name="nearfar_describe") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function c_describe
  end interface

! The specific names behind the generic ones, then the procedures: one of each for every kind and rank.
#define NAMES
#include "nearfar_kinds.inc"
#undef NAMES

  ! What arrays without elements point to.
  integer(int64), target, save :: nothing(2) = 0

contains

  ! A block for an array; c_null_ptr with a reason in `why` on failure.
  subroutine get(extents, element, tier, block, why)
    integer(int64), intent(in) :: extents(:)
    integer(int64), intent(in) :: element
    integer(c_int), intent(in), optional :: tier
    type(c_ptr), intent(out) :: block
    integer, intent(out) :: why
    integer(c_int), parameter :: enomem = 12
    integer(int64) :: bytes
    integer(c_int) :: where_to, failed
    integer :: i
    where_to = nf_near
    if (present(tier)) where_to = tier
    bytes = element
    do i = 1, size(extents)
      if (extents(i) <= 0) then
        block = c_loc(nothing(1))
        why = 0
        return
      end if
    end do
    do i = 1, size(extents)
      if (bytes > huge(bytes) / extents(i)) then
        block = c_null_ptr
        why = enomem
        return
      end if
      bytes = bytes * extents(i)
    end do
    failed = c_memalign(block, 64_c_size_t, int(bytes, c_size_t), where_to)
    if (failed /= 0) block = c_null_ptr
    why = int(failed)
  end subroutine get

  ! The end of nf_allocate: passes the reason on, or stops.
  subroutine tell(why, stat)
    integer, intent(in) :: why
    integer, intent(out), optional :: stat
    if (present(stat)) then
      stat = why
    else if (why /= 0) then
      write (error_unit, '(a,i0,2a)') 'nf_allocate: no memory (error ', why, '); ', nf_describe()
      error stop 1
    end if
  end subroutine tell

  ! Where the bytes from the first to the last element are, whichever lies lower.
  subroutine ask(first, last, element, near, far, absent)
    type(c_ptr), intent(in) :: first, last
    integer(int64), intent(in) :: element
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    type(where_t) :: found
    integer(c_intptr_t) :: distance
    type(c_ptr) :: start
    distance = transfer(last, distance) - transfer(first, distance)
    start = first
    if (distance < 0) start = last
    if (element > 0) then
      if (c_where(start, int(abs(distance) + element, c_size_t), found) /= 0) found = where_t()
    end if
    near = found%near_bytes
    if (present(far)) far = found%far_bytes
    if (present(absent)) absent = found%absent_bytes
  end subroutine ask

  function nf_left(tier) result(bytes)
    integer(c_int), intent(in) :: tier
    integer(int64) :: bytes
    type(capacity_t) :: found
    bytes = -1
    if (c_capacity(tier, found) == 0) bytes = found%free_bytes
  end function nf_left

  function nf_total(tier) result(bytes)
    integer(c_int), intent(in) :: tier
    integer(int64) :: bytes
    type(capacity_t) :: found
    bytes = -1
    if (c_capacity(tier, found) == 0) bytes = found%total_bytes
  end function nf_total

  function nf_tiers() result(tiers)
    integer :: tiers
    tiers = int(c_tiers())
  end function nf_tiers

  function nf_describe() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    type(c_ptr) :: line
    integer, parameter :: most = 4096
    integer :: length, i
    line = c_describe()
    call c_f_pointer(line, letters, [most])
    length = 0
    do while (letters(length + 1) /= char(0))
      length = length + 1
    end do
    allocate (character(len=length) :: text)
    do i = 1, length
      text(i:i) = letters(i)
    end do
  end function nf_describe

#include "nearfar_kinds.inc"

end module nearfar
