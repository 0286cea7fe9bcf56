! Made by generate.py; do not edit.
!
! Arrays in near (fast, small) or far (large, slower) memory, for every Fortran 2008 compiler:
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
! are is said in nearfar.h. Compile this file with the program's compiler and link with -lnearfar.
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

  interface nf_allocate
    module procedure :: get_r4_1s, get_r4_1l, get_r4_2s, get_r4_2l, get_r4_3s, get_r4_3l, get_r4_4s, get_r4_4l
    module procedure :: get_r4_5s, get_r4_5l, get_r4_6s, get_r4_6l, get_r4_7s, get_r4_7l, get_r4_ns, get_r4_nl
    module procedure :: get_r8_1s, get_r8_1l, get_r8_2s, get_r8_2l, get_r8_3s, get_r8_3l, get_r8_4s, get_r8_4l
    module procedure :: get_r8_5s, get_r8_5l, get_r8_6s, get_r8_6l, get_r8_7s, get_r8_7l, get_r8_ns, get_r8_nl
    module procedure :: get_c4_1s, get_c4_1l, get_c4_2s, get_c4_2l, get_c4_3s, get_c4_3l, get_c4_4s, get_c4_4l
    module procedure :: get_c4_5s, get_c4_5l, get_c4_6s, get_c4_6l, get_c4_7s, get_c4_7l, get_c4_ns, get_c4_nl
    module procedure :: get_c8_1s, get_c8_1l, get_c8_2s, get_c8_2l, get_c8_3s, get_c8_3l, get_c8_4s, get_c8_4l
    module procedure :: get_c8_5s, get_c8_5l, get_c8_6s, get_c8_6l, get_c8_7s, get_c8_7l, get_c8_ns, get_c8_nl
    module procedure :: get_i1_1s, get_i1_1l, get_i1_2s, get_i1_2l, get_i1_3s, get_i1_3l, get_i1_4s, get_i1_4l
    module procedure :: get_i1_5s, get_i1_5l, get_i1_6s, get_i1_6l, get_i1_7s, get_i1_7l, get_i1_ns, get_i1_nl
    module procedure :: get_i2_1s, get_i2_1l, get_i2_2s, get_i2_2l, get_i2_3s, get_i2_3l, get_i2_4s, get_i2_4l
    module procedure :: get_i2_5s, get_i2_5l, get_i2_6s, get_i2_6l, get_i2_7s, get_i2_7l, get_i2_ns, get_i2_nl
    module procedure :: get_i4_1s, get_i4_1l, get_i4_2s, get_i4_2l, get_i4_3s, get_i4_3l, get_i4_4s, get_i4_4l
    module procedure :: get_i4_5s, get_i4_5l, get_i4_6s, get_i4_6l, get_i4_7s, get_i4_7l, get_i4_ns, get_i4_nl
    module procedure :: get_i8_1s, get_i8_1l, get_i8_2s, get_i8_2l, get_i8_3s, get_i8_3l, get_i8_4s, get_i8_4l
    module procedure :: get_i8_5s, get_i8_5l, get_i8_6s, get_i8_6l, get_i8_7s, get_i8_7l, get_i8_ns, get_i8_nl
    module procedure :: get_l1_1s, get_l1_1l, get_l1_2s, get_l1_2l, get_l1_3s, get_l1_3l, get_l1_4s, get_l1_4l
    module procedure :: get_l1_5s, get_l1_5l, get_l1_6s, get_l1_6l, get_l1_7s, get_l1_7l, get_l1_ns, get_l1_nl
    module procedure :: get_l4_1s, get_l4_1l, get_l4_2s, get_l4_2l, get_l4_3s, get_l4_3l, get_l4_4s, get_l4_4l
    module procedure :: get_l4_5s, get_l4_5l, get_l4_6s, get_l4_6l, get_l4_7s, get_l4_7l, get_l4_ns, get_l4_nl
  end interface nf_allocate
  interface nf_deallocate
    module procedure :: drop_r4_1, drop_r4_2, drop_r4_3, drop_r4_4, drop_r4_5, drop_r4_6, drop_r4_7, drop_r8_1
    module procedure :: drop_r8_2, drop_r8_3, drop_r8_4, drop_r8_5, drop_r8_6, drop_r8_7, drop_c4_1, drop_c4_2
    module procedure :: drop_c4_3, drop_c4_4, drop_c4_5, drop_c4_6, drop_c4_7, drop_c8_1, drop_c8_2, drop_c8_3
    module procedure :: drop_c8_4, drop_c8_5, drop_c8_6, drop_c8_7, drop_i1_1, drop_i1_2, drop_i1_3, drop_i1_4
    module procedure :: drop_i1_5, drop_i1_6, drop_i1_7, drop_i2_1, drop_i2_2, drop_i2_3, drop_i2_4, drop_i2_5
    module procedure :: drop_i2_6, drop_i2_7, drop_i4_1, drop_i4_2, drop_i4_3, drop_i4_4, drop_i4_5, drop_i4_6
    module procedure :: drop_i4_7, drop_i8_1, drop_i8_2, drop_i8_3, drop_i8_4, drop_i8_5, drop_i8_6, drop_i8_7
    module procedure :: drop_l1_1, drop_l1_2, drop_l1_3, drop_l1_4, drop_l1_5, drop_l1_6, drop_l1_7, drop_l4_1
    module procedure :: drop_l4_2, drop_l4_3, drop_l4_4, drop_l4_5, drop_l4_6, drop_l4_7
  end interface nf_deallocate
  interface nf_where
    module procedure :: where_r4_1, where_r4_2, where_r4_3, where_r4_4, where_r4_5, where_r4_6, where_r4_7, where_r8_1
    module procedure :: where_r8_2, where_r8_3, where_r8_4, where_r8_5, where_r8_6, where_r8_7, where_c4_1, where_c4_2
    module procedure :: where_c4_3, where_c4_4, where_c4_5, where_c4_6, where_c4_7, where_c8_1, where_c8_2, where_c8_3
    module procedure :: where_c8_4, where_c8_5, where_c8_6, where_c8_7, where_i1_1, where_i1_2, where_i1_3, where_i1_4
    module procedure :: where_i1_5, where_i1_6, where_i1_7, where_i2_1, where_i2_2, where_i2_3, where_i2_4, where_i2_5
    module procedure :: where_i2_6, where_i2_7, where_i4_1, where_i4_2, where_i4_3, where_i4_4, where_i4_5, where_i4_6
    module procedure :: where_i4_7, where_i8_1, where_i8_2, where_i8_3, where_i8_4, where_i8_5, where_i8_6, where_i8_7
    module procedure :: where_l1_1, where_l1_2, where_l1_3, where_l1_4, where_l1_5, where_l1_6, where_l1_7, where_l4_1
    module procedure :: where_l4_2, where_l4_3, where_l4_4, where_l4_5, where_l4_6, where_l4_7
  end interface nf_where

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

  subroutine get_r4_1s(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(1)
    real(real32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_1s

  subroutine get_r4_ns(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower
    real(real32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int32)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_ns

  subroutine get_r4_1l(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(1)
    real(real32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_1l

  subroutine get_r4_nl(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower
    real(real32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int64)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_nl

  subroutine drop_r4_1(array, stat)
    real(real32), pointer, intent(inout) :: array(:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real32), intent(in), target :: array(:)
      if (size(array) > 0) call c_free(c_loc(array(1)))
    end subroutine drop
  end subroutine drop_r4_1

  subroutine where_r4_1(array, near, far, absent)
    real(real32), intent(in), target :: array(:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(1)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1)), c_loc(array(n(1))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r4_1

  subroutine get_r4_2s(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:)
    integer(int32), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(2)
    real(real32), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_2s

  subroutine get_r4_2l(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:)
    integer(int64), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(2)
    real(real32), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_2l

  subroutine drop_r4_2(array, stat)
    real(real32), pointer, intent(inout) :: array(:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real32), intent(in), target :: array(:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1)))
    end subroutine drop
  end subroutine drop_r4_2

  subroutine where_r4_2(array, near, far, absent)
    real(real32), intent(in), target :: array(:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(2)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1)), c_loc(array(n(1), n(2))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r4_2

  subroutine get_r4_3s(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:,:)
    integer(int32), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(3)
    real(real32), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_3s

  subroutine get_r4_3l(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:,:)
    integer(int64), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(3)
    real(real32), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_3l

  subroutine drop_r4_3(array, stat)
    real(real32), pointer, intent(inout) :: array(:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real32), intent(in), target :: array(:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1)))
    end subroutine drop
  end subroutine drop_r4_3

  subroutine where_r4_3(array, near, far, absent)
    real(real32), intent(in), target :: array(:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(3)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1)), c_loc(array(n(1), n(2), n(3))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r4_3

  subroutine get_r4_4s(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:,:,:)
    integer(int32), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(4)
    real(real32), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_4s

  subroutine get_r4_4l(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:,:,:)
    integer(int64), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(4)
    real(real32), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_4l

  subroutine drop_r4_4(array, stat)
    real(real32), pointer, intent(inout) :: array(:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real32), intent(in), target :: array(:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_r4_4

  subroutine where_r4_4(array, near, far, absent)
    real(real32), intent(in), target :: array(:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(4)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r4_4

  subroutine get_r4_5s(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int32), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(5)
    real(real32), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_5s

  subroutine get_r4_5l(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int64), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(5)
    real(real32), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_5l

  subroutine drop_r4_5(array, stat)
    real(real32), pointer, intent(inout) :: array(:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real32), intent(in), target :: array(:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_r4_5

  subroutine where_r4_5(array, near, far, absent)
    real(real32), intent(in), target :: array(:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(5)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r4_5

  subroutine get_r4_6s(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(6)
    real(real32), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_6s

  subroutine get_r4_6l(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(6)
    real(real32), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_6l

  subroutine drop_r4_6(array, stat)
    real(real32), pointer, intent(inout) :: array(:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real32), intent(in), target :: array(:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_r4_6

  subroutine where_r4_6(array, near, far, absent)
    real(real32), intent(in), target :: array(:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(6)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r4_6

  subroutine get_r4_7s(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(7)
    real(real32), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_7s

  subroutine get_r4_7l(array, shape, tier, stat, lower)
    real(real32), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(7)
    real(real32), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r4_7l

  subroutine drop_r4_7(array, stat)
    real(real32), pointer, intent(inout) :: array(:,:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real32), intent(in), target :: array(:,:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_r4_7

  subroutine where_r4_7(array, near, far, absent)
    real(real32), intent(in), target :: array(:,:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(7)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6), n(7))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r4_7

  subroutine get_r8_1s(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(1)
    real(real64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_1s

  subroutine get_r8_ns(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower
    real(real64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int32)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_ns

  subroutine get_r8_1l(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(1)
    real(real64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_1l

  subroutine get_r8_nl(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower
    real(real64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int64)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_nl

  subroutine drop_r8_1(array, stat)
    real(real64), pointer, intent(inout) :: array(:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real64), intent(in), target :: array(:)
      if (size(array) > 0) call c_free(c_loc(array(1)))
    end subroutine drop
  end subroutine drop_r8_1

  subroutine where_r8_1(array, near, far, absent)
    real(real64), intent(in), target :: array(:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(1)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1)), c_loc(array(n(1))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r8_1

  subroutine get_r8_2s(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:)
    integer(int32), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(2)
    real(real64), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_2s

  subroutine get_r8_2l(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:)
    integer(int64), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(2)
    real(real64), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_2l

  subroutine drop_r8_2(array, stat)
    real(real64), pointer, intent(inout) :: array(:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real64), intent(in), target :: array(:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1)))
    end subroutine drop
  end subroutine drop_r8_2

  subroutine where_r8_2(array, near, far, absent)
    real(real64), intent(in), target :: array(:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(2)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1)), c_loc(array(n(1), n(2))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r8_2

  subroutine get_r8_3s(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:,:)
    integer(int32), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(3)
    real(real64), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_3s

  subroutine get_r8_3l(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:,:)
    integer(int64), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(3)
    real(real64), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_3l

  subroutine drop_r8_3(array, stat)
    real(real64), pointer, intent(inout) :: array(:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real64), intent(in), target :: array(:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1)))
    end subroutine drop
  end subroutine drop_r8_3

  subroutine where_r8_3(array, near, far, absent)
    real(real64), intent(in), target :: array(:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(3)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1)), c_loc(array(n(1), n(2), n(3))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r8_3

  subroutine get_r8_4s(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:,:,:)
    integer(int32), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(4)
    real(real64), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_4s

  subroutine get_r8_4l(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:,:,:)
    integer(int64), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(4)
    real(real64), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_4l

  subroutine drop_r8_4(array, stat)
    real(real64), pointer, intent(inout) :: array(:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real64), intent(in), target :: array(:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_r8_4

  subroutine where_r8_4(array, near, far, absent)
    real(real64), intent(in), target :: array(:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(4)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r8_4

  subroutine get_r8_5s(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int32), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(5)
    real(real64), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_5s

  subroutine get_r8_5l(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int64), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(5)
    real(real64), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_5l

  subroutine drop_r8_5(array, stat)
    real(real64), pointer, intent(inout) :: array(:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real64), intent(in), target :: array(:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_r8_5

  subroutine where_r8_5(array, near, far, absent)
    real(real64), intent(in), target :: array(:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(5)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r8_5

  subroutine get_r8_6s(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(6)
    real(real64), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_6s

  subroutine get_r8_6l(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(6)
    real(real64), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_6l

  subroutine drop_r8_6(array, stat)
    real(real64), pointer, intent(inout) :: array(:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real64), intent(in), target :: array(:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_r8_6

  subroutine where_r8_6(array, near, far, absent)
    real(real64), intent(in), target :: array(:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(6)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r8_6

  subroutine get_r8_7s(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(7)
    real(real64), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_7s

  subroutine get_r8_7l(array, shape, tier, stat, lower)
    real(real64), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(7)
    real(real64), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_r8_7l

  subroutine drop_r8_7(array, stat)
    real(real64), pointer, intent(inout) :: array(:,:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      real(real64), intent(in), target :: array(:,:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_r8_7

  subroutine where_r8_7(array, near, far, absent)
    real(real64), intent(in), target :: array(:,:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(7)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6), n(7))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_r8_7

  subroutine get_c4_1s(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(1)
    complex(real32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_1s

  subroutine get_c4_ns(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower
    complex(real32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int32)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_ns

  subroutine get_c4_1l(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(1)
    complex(real32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_1l

  subroutine get_c4_nl(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower
    complex(real32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int64)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_nl

  subroutine drop_c4_1(array, stat)
    complex(real32), pointer, intent(inout) :: array(:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real32), intent(in), target :: array(:)
      if (size(array) > 0) call c_free(c_loc(array(1)))
    end subroutine drop
  end subroutine drop_c4_1

  subroutine where_c4_1(array, near, far, absent)
    complex(real32), intent(in), target :: array(:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(1)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1)), c_loc(array(n(1))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c4_1

  subroutine get_c4_2s(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:)
    integer(int32), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(2)
    complex(real32), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_2s

  subroutine get_c4_2l(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:)
    integer(int64), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(2)
    complex(real32), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_2l

  subroutine drop_c4_2(array, stat)
    complex(real32), pointer, intent(inout) :: array(:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real32), intent(in), target :: array(:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1)))
    end subroutine drop
  end subroutine drop_c4_2

  subroutine where_c4_2(array, near, far, absent)
    complex(real32), intent(in), target :: array(:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(2)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1)), c_loc(array(n(1), n(2))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c4_2

  subroutine get_c4_3s(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:,:)
    integer(int32), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(3)
    complex(real32), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_3s

  subroutine get_c4_3l(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:,:)
    integer(int64), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(3)
    complex(real32), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_3l

  subroutine drop_c4_3(array, stat)
    complex(real32), pointer, intent(inout) :: array(:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real32), intent(in), target :: array(:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1)))
    end subroutine drop
  end subroutine drop_c4_3

  subroutine where_c4_3(array, near, far, absent)
    complex(real32), intent(in), target :: array(:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(3)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1)), c_loc(array(n(1), n(2), n(3))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c4_3

  subroutine get_c4_4s(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:,:,:)
    integer(int32), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(4)
    complex(real32), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_4s

  subroutine get_c4_4l(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:,:,:)
    integer(int64), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(4)
    complex(real32), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_4l

  subroutine drop_c4_4(array, stat)
    complex(real32), pointer, intent(inout) :: array(:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real32), intent(in), target :: array(:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_c4_4

  subroutine where_c4_4(array, near, far, absent)
    complex(real32), intent(in), target :: array(:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(4)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c4_4

  subroutine get_c4_5s(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int32), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(5)
    complex(real32), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_5s

  subroutine get_c4_5l(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int64), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(5)
    complex(real32), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_5l

  subroutine drop_c4_5(array, stat)
    complex(real32), pointer, intent(inout) :: array(:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real32), intent(in), target :: array(:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_c4_5

  subroutine where_c4_5(array, near, far, absent)
    complex(real32), intent(in), target :: array(:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(5)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c4_5

  subroutine get_c4_6s(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(6)
    complex(real32), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_6s

  subroutine get_c4_6l(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(6)
    complex(real32), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_6l

  subroutine drop_c4_6(array, stat)
    complex(real32), pointer, intent(inout) :: array(:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real32), intent(in), target :: array(:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_c4_6

  subroutine where_c4_6(array, near, far, absent)
    complex(real32), intent(in), target :: array(:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(6)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c4_6

  subroutine get_c4_7s(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(7)
    complex(real32), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_7s

  subroutine get_c4_7l(array, shape, tier, stat, lower)
    complex(real32), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(7)
    complex(real32), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c4_7l

  subroutine drop_c4_7(array, stat)
    complex(real32), pointer, intent(inout) :: array(:,:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real32), intent(in), target :: array(:,:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_c4_7

  subroutine where_c4_7(array, near, far, absent)
    complex(real32), intent(in), target :: array(:,:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(7)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6), n(7))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c4_7

  subroutine get_c8_1s(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(1)
    complex(real64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_1s

  subroutine get_c8_ns(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower
    complex(real64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int32)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_ns

  subroutine get_c8_1l(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(1)
    complex(real64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_1l

  subroutine get_c8_nl(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower
    complex(real64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int64)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_nl

  subroutine drop_c8_1(array, stat)
    complex(real64), pointer, intent(inout) :: array(:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real64), intent(in), target :: array(:)
      if (size(array) > 0) call c_free(c_loc(array(1)))
    end subroutine drop
  end subroutine drop_c8_1

  subroutine where_c8_1(array, near, far, absent)
    complex(real64), intent(in), target :: array(:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(1)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1)), c_loc(array(n(1))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c8_1

  subroutine get_c8_2s(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:)
    integer(int32), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(2)
    complex(real64), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_2s

  subroutine get_c8_2l(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:)
    integer(int64), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(2)
    complex(real64), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_2l

  subroutine drop_c8_2(array, stat)
    complex(real64), pointer, intent(inout) :: array(:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real64), intent(in), target :: array(:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1)))
    end subroutine drop
  end subroutine drop_c8_2

  subroutine where_c8_2(array, near, far, absent)
    complex(real64), intent(in), target :: array(:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(2)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1)), c_loc(array(n(1), n(2))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c8_2

  subroutine get_c8_3s(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:,:)
    integer(int32), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(3)
    complex(real64), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_3s

  subroutine get_c8_3l(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:,:)
    integer(int64), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(3)
    complex(real64), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_3l

  subroutine drop_c8_3(array, stat)
    complex(real64), pointer, intent(inout) :: array(:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real64), intent(in), target :: array(:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1)))
    end subroutine drop
  end subroutine drop_c8_3

  subroutine where_c8_3(array, near, far, absent)
    complex(real64), intent(in), target :: array(:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(3)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1)), c_loc(array(n(1), n(2), n(3))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c8_3

  subroutine get_c8_4s(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:,:,:)
    integer(int32), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(4)
    complex(real64), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_4s

  subroutine get_c8_4l(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:,:,:)
    integer(int64), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(4)
    complex(real64), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_4l

  subroutine drop_c8_4(array, stat)
    complex(real64), pointer, intent(inout) :: array(:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real64), intent(in), target :: array(:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_c8_4

  subroutine where_c8_4(array, near, far, absent)
    complex(real64), intent(in), target :: array(:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(4)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c8_4

  subroutine get_c8_5s(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int32), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(5)
    complex(real64), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_5s

  subroutine get_c8_5l(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int64), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(5)
    complex(real64), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_5l

  subroutine drop_c8_5(array, stat)
    complex(real64), pointer, intent(inout) :: array(:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real64), intent(in), target :: array(:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_c8_5

  subroutine where_c8_5(array, near, far, absent)
    complex(real64), intent(in), target :: array(:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(5)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c8_5

  subroutine get_c8_6s(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(6)
    complex(real64), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_6s

  subroutine get_c8_6l(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(6)
    complex(real64), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_6l

  subroutine drop_c8_6(array, stat)
    complex(real64), pointer, intent(inout) :: array(:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real64), intent(in), target :: array(:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_c8_6

  subroutine where_c8_6(array, near, far, absent)
    complex(real64), intent(in), target :: array(:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(6)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c8_6

  subroutine get_c8_7s(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(7)
    complex(real64), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_7s

  subroutine get_c8_7l(array, shape, tier, stat, lower)
    complex(real64), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(7)
    complex(real64), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_c8_7l

  subroutine drop_c8_7(array, stat)
    complex(real64), pointer, intent(inout) :: array(:,:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      complex(real64), intent(in), target :: array(:,:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_c8_7

  subroutine where_c8_7(array, near, far, absent)
    complex(real64), intent(in), target :: array(:,:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(7)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6), n(7))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_c8_7

  subroutine get_i1_1s(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(1)
    integer(int8), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_1s

  subroutine get_i1_ns(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower
    integer(int8), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int32)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_ns

  subroutine get_i1_1l(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(1)
    integer(int8), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_1l

  subroutine get_i1_nl(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower
    integer(int8), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int64)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_nl

  subroutine drop_i1_1(array, stat)
    integer(int8), pointer, intent(inout) :: array(:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int8), intent(in), target :: array(:)
      if (size(array) > 0) call c_free(c_loc(array(1)))
    end subroutine drop
  end subroutine drop_i1_1

  subroutine where_i1_1(array, near, far, absent)
    integer(int8), intent(in), target :: array(:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(1)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1)), c_loc(array(n(1))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i1_1

  subroutine get_i1_2s(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:)
    integer(int32), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(2)
    integer(int8), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_2s

  subroutine get_i1_2l(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:)
    integer(int64), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(2)
    integer(int8), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_2l

  subroutine drop_i1_2(array, stat)
    integer(int8), pointer, intent(inout) :: array(:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int8), intent(in), target :: array(:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1)))
    end subroutine drop
  end subroutine drop_i1_2

  subroutine where_i1_2(array, near, far, absent)
    integer(int8), intent(in), target :: array(:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(2)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1)), c_loc(array(n(1), n(2))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i1_2

  subroutine get_i1_3s(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:,:)
    integer(int32), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(3)
    integer(int8), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_3s

  subroutine get_i1_3l(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:,:)
    integer(int64), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(3)
    integer(int8), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_3l

  subroutine drop_i1_3(array, stat)
    integer(int8), pointer, intent(inout) :: array(:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int8), intent(in), target :: array(:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1)))
    end subroutine drop
  end subroutine drop_i1_3

  subroutine where_i1_3(array, near, far, absent)
    integer(int8), intent(in), target :: array(:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(3)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1)), c_loc(array(n(1), n(2), n(3))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i1_3

  subroutine get_i1_4s(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:,:,:)
    integer(int32), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(4)
    integer(int8), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_4s

  subroutine get_i1_4l(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:,:,:)
    integer(int64), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(4)
    integer(int8), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_4l

  subroutine drop_i1_4(array, stat)
    integer(int8), pointer, intent(inout) :: array(:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int8), intent(in), target :: array(:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i1_4

  subroutine where_i1_4(array, near, far, absent)
    integer(int8), intent(in), target :: array(:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(4)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i1_4

  subroutine get_i1_5s(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int32), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(5)
    integer(int8), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_5s

  subroutine get_i1_5l(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int64), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(5)
    integer(int8), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_5l

  subroutine drop_i1_5(array, stat)
    integer(int8), pointer, intent(inout) :: array(:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int8), intent(in), target :: array(:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i1_5

  subroutine where_i1_5(array, near, far, absent)
    integer(int8), intent(in), target :: array(:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(5)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i1_5

  subroutine get_i1_6s(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(6)
    integer(int8), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_6s

  subroutine get_i1_6l(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(6)
    integer(int8), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_6l

  subroutine drop_i1_6(array, stat)
    integer(int8), pointer, intent(inout) :: array(:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int8), intent(in), target :: array(:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i1_6

  subroutine where_i1_6(array, near, far, absent)
    integer(int8), intent(in), target :: array(:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(6)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i1_6

  subroutine get_i1_7s(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(7)
    integer(int8), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_7s

  subroutine get_i1_7l(array, shape, tier, stat, lower)
    integer(int8), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(7)
    integer(int8), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i1_7l

  subroutine drop_i1_7(array, stat)
    integer(int8), pointer, intent(inout) :: array(:,:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int8), intent(in), target :: array(:,:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i1_7

  subroutine where_i1_7(array, near, far, absent)
    integer(int8), intent(in), target :: array(:,:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(7)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6), n(7))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i1_7

  subroutine get_i2_1s(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(1)
    integer(int16), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_1s

  subroutine get_i2_ns(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower
    integer(int16), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int32)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_ns

  subroutine get_i2_1l(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(1)
    integer(int16), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_1l

  subroutine get_i2_nl(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower
    integer(int16), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int64)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_nl

  subroutine drop_i2_1(array, stat)
    integer(int16), pointer, intent(inout) :: array(:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int16), intent(in), target :: array(:)
      if (size(array) > 0) call c_free(c_loc(array(1)))
    end subroutine drop
  end subroutine drop_i2_1

  subroutine where_i2_1(array, near, far, absent)
    integer(int16), intent(in), target :: array(:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(1)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1)), c_loc(array(n(1))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i2_1

  subroutine get_i2_2s(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:)
    integer(int32), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(2)
    integer(int16), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_2s

  subroutine get_i2_2l(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:)
    integer(int64), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(2)
    integer(int16), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_2l

  subroutine drop_i2_2(array, stat)
    integer(int16), pointer, intent(inout) :: array(:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int16), intent(in), target :: array(:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1)))
    end subroutine drop
  end subroutine drop_i2_2

  subroutine where_i2_2(array, near, far, absent)
    integer(int16), intent(in), target :: array(:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(2)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1)), c_loc(array(n(1), n(2))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i2_2

  subroutine get_i2_3s(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:,:)
    integer(int32), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(3)
    integer(int16), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_3s

  subroutine get_i2_3l(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:,:)
    integer(int64), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(3)
    integer(int16), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_3l

  subroutine drop_i2_3(array, stat)
    integer(int16), pointer, intent(inout) :: array(:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int16), intent(in), target :: array(:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1)))
    end subroutine drop
  end subroutine drop_i2_3

  subroutine where_i2_3(array, near, far, absent)
    integer(int16), intent(in), target :: array(:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(3)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1)), c_loc(array(n(1), n(2), n(3))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i2_3

  subroutine get_i2_4s(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:,:,:)
    integer(int32), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(4)
    integer(int16), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_4s

  subroutine get_i2_4l(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:,:,:)
    integer(int64), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(4)
    integer(int16), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_4l

  subroutine drop_i2_4(array, stat)
    integer(int16), pointer, intent(inout) :: array(:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int16), intent(in), target :: array(:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i2_4

  subroutine where_i2_4(array, near, far, absent)
    integer(int16), intent(in), target :: array(:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(4)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i2_4

  subroutine get_i2_5s(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int32), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(5)
    integer(int16), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_5s

  subroutine get_i2_5l(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int64), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(5)
    integer(int16), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_5l

  subroutine drop_i2_5(array, stat)
    integer(int16), pointer, intent(inout) :: array(:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int16), intent(in), target :: array(:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i2_5

  subroutine where_i2_5(array, near, far, absent)
    integer(int16), intent(in), target :: array(:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(5)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i2_5

  subroutine get_i2_6s(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(6)
    integer(int16), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_6s

  subroutine get_i2_6l(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(6)
    integer(int16), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_6l

  subroutine drop_i2_6(array, stat)
    integer(int16), pointer, intent(inout) :: array(:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int16), intent(in), target :: array(:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i2_6

  subroutine where_i2_6(array, near, far, absent)
    integer(int16), intent(in), target :: array(:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(6)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i2_6

  subroutine get_i2_7s(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(7)
    integer(int16), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_7s

  subroutine get_i2_7l(array, shape, tier, stat, lower)
    integer(int16), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(7)
    integer(int16), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i2_7l

  subroutine drop_i2_7(array, stat)
    integer(int16), pointer, intent(inout) :: array(:,:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int16), intent(in), target :: array(:,:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i2_7

  subroutine where_i2_7(array, near, far, absent)
    integer(int16), intent(in), target :: array(:,:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(7)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6), n(7))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i2_7

  subroutine get_i4_1s(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(1)
    integer(int32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_1s

  subroutine get_i4_ns(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower
    integer(int32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int32)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_ns

  subroutine get_i4_1l(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(1)
    integer(int32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_1l

  subroutine get_i4_nl(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower
    integer(int32), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int64)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_nl

  subroutine drop_i4_1(array, stat)
    integer(int32), pointer, intent(inout) :: array(:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int32), intent(in), target :: array(:)
      if (size(array) > 0) call c_free(c_loc(array(1)))
    end subroutine drop
  end subroutine drop_i4_1

  subroutine where_i4_1(array, near, far, absent)
    integer(int32), intent(in), target :: array(:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(1)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1)), c_loc(array(n(1))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i4_1

  subroutine get_i4_2s(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:)
    integer(int32), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(2)
    integer(int32), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_2s

  subroutine get_i4_2l(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:)
    integer(int64), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(2)
    integer(int32), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_2l

  subroutine drop_i4_2(array, stat)
    integer(int32), pointer, intent(inout) :: array(:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int32), intent(in), target :: array(:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1)))
    end subroutine drop
  end subroutine drop_i4_2

  subroutine where_i4_2(array, near, far, absent)
    integer(int32), intent(in), target :: array(:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(2)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1)), c_loc(array(n(1), n(2))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i4_2

  subroutine get_i4_3s(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:,:)
    integer(int32), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(3)
    integer(int32), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_3s

  subroutine get_i4_3l(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:,:)
    integer(int64), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(3)
    integer(int32), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_3l

  subroutine drop_i4_3(array, stat)
    integer(int32), pointer, intent(inout) :: array(:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int32), intent(in), target :: array(:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1)))
    end subroutine drop
  end subroutine drop_i4_3

  subroutine where_i4_3(array, near, far, absent)
    integer(int32), intent(in), target :: array(:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(3)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1)), c_loc(array(n(1), n(2), n(3))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i4_3

  subroutine get_i4_4s(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:,:,:)
    integer(int32), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(4)
    integer(int32), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_4s

  subroutine get_i4_4l(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:,:,:)
    integer(int64), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(4)
    integer(int32), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_4l

  subroutine drop_i4_4(array, stat)
    integer(int32), pointer, intent(inout) :: array(:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int32), intent(in), target :: array(:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i4_4

  subroutine where_i4_4(array, near, far, absent)
    integer(int32), intent(in), target :: array(:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(4)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i4_4

  subroutine get_i4_5s(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int32), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(5)
    integer(int32), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_5s

  subroutine get_i4_5l(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int64), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(5)
    integer(int32), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_5l

  subroutine drop_i4_5(array, stat)
    integer(int32), pointer, intent(inout) :: array(:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int32), intent(in), target :: array(:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i4_5

  subroutine where_i4_5(array, near, far, absent)
    integer(int32), intent(in), target :: array(:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(5)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i4_5

  subroutine get_i4_6s(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(6)
    integer(int32), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_6s

  subroutine get_i4_6l(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(6)
    integer(int32), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_6l

  subroutine drop_i4_6(array, stat)
    integer(int32), pointer, intent(inout) :: array(:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int32), intent(in), target :: array(:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i4_6

  subroutine where_i4_6(array, near, far, absent)
    integer(int32), intent(in), target :: array(:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(6)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i4_6

  subroutine get_i4_7s(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(7)
    integer(int32), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_7s

  subroutine get_i4_7l(array, shape, tier, stat, lower)
    integer(int32), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(7)
    integer(int32), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i4_7l

  subroutine drop_i4_7(array, stat)
    integer(int32), pointer, intent(inout) :: array(:,:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int32), intent(in), target :: array(:,:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i4_7

  subroutine where_i4_7(array, near, far, absent)
    integer(int32), intent(in), target :: array(:,:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(7)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6), n(7))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i4_7

  subroutine get_i8_1s(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(1)
    integer(int64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_1s

  subroutine get_i8_ns(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower
    integer(int64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int32)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_ns

  subroutine get_i8_1l(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(1)
    integer(int64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_1l

  subroutine get_i8_nl(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower
    integer(int64), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int64)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_nl

  subroutine drop_i8_1(array, stat)
    integer(int64), pointer, intent(inout) :: array(:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int64), intent(in), target :: array(:)
      if (size(array) > 0) call c_free(c_loc(array(1)))
    end subroutine drop
  end subroutine drop_i8_1

  subroutine where_i8_1(array, near, far, absent)
    integer(int64), intent(in), target :: array(:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(1)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1)), c_loc(array(n(1))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i8_1

  subroutine get_i8_2s(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:)
    integer(int32), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(2)
    integer(int64), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_2s

  subroutine get_i8_2l(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:)
    integer(int64), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(2)
    integer(int64), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_2l

  subroutine drop_i8_2(array, stat)
    integer(int64), pointer, intent(inout) :: array(:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int64), intent(in), target :: array(:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1)))
    end subroutine drop
  end subroutine drop_i8_2

  subroutine where_i8_2(array, near, far, absent)
    integer(int64), intent(in), target :: array(:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(2)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1)), c_loc(array(n(1), n(2))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i8_2

  subroutine get_i8_3s(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:,:)
    integer(int32), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(3)
    integer(int64), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_3s

  subroutine get_i8_3l(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:,:)
    integer(int64), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(3)
    integer(int64), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_3l

  subroutine drop_i8_3(array, stat)
    integer(int64), pointer, intent(inout) :: array(:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int64), intent(in), target :: array(:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1)))
    end subroutine drop
  end subroutine drop_i8_3

  subroutine where_i8_3(array, near, far, absent)
    integer(int64), intent(in), target :: array(:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(3)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1)), c_loc(array(n(1), n(2), n(3))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i8_3

  subroutine get_i8_4s(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:,:,:)
    integer(int32), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(4)
    integer(int64), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_4s

  subroutine get_i8_4l(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:,:,:)
    integer(int64), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(4)
    integer(int64), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_4l

  subroutine drop_i8_4(array, stat)
    integer(int64), pointer, intent(inout) :: array(:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int64), intent(in), target :: array(:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i8_4

  subroutine where_i8_4(array, near, far, absent)
    integer(int64), intent(in), target :: array(:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(4)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i8_4

  subroutine get_i8_5s(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int32), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(5)
    integer(int64), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_5s

  subroutine get_i8_5l(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int64), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(5)
    integer(int64), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_5l

  subroutine drop_i8_5(array, stat)
    integer(int64), pointer, intent(inout) :: array(:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int64), intent(in), target :: array(:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i8_5

  subroutine where_i8_5(array, near, far, absent)
    integer(int64), intent(in), target :: array(:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(5)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i8_5

  subroutine get_i8_6s(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(6)
    integer(int64), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_6s

  subroutine get_i8_6l(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(6)
    integer(int64), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_6l

  subroutine drop_i8_6(array, stat)
    integer(int64), pointer, intent(inout) :: array(:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int64), intent(in), target :: array(:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i8_6

  subroutine where_i8_6(array, near, far, absent)
    integer(int64), intent(in), target :: array(:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(6)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i8_6

  subroutine get_i8_7s(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(7)
    integer(int64), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_7s

  subroutine get_i8_7l(array, shape, tier, stat, lower)
    integer(int64), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(7)
    integer(int64), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_i8_7l

  subroutine drop_i8_7(array, stat)
    integer(int64), pointer, intent(inout) :: array(:,:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      integer(int64), intent(in), target :: array(:,:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_i8_7

  subroutine where_i8_7(array, near, far, absent)
    integer(int64), intent(in), target :: array(:,:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(7)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6), n(7))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_i8_7

  subroutine get_l1_1s(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(1)
    logical(c_bool), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_1s

  subroutine get_l1_ns(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower
    logical(c_bool), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int32)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_ns

  subroutine get_l1_1l(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(1)
    logical(c_bool), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_1l

  subroutine get_l1_nl(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower
    logical(c_bool), pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int64)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_nl

  subroutine drop_l1_1(array, stat)
    logical(c_bool), pointer, intent(inout) :: array(:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical(c_bool), intent(in), target :: array(:)
      if (size(array) > 0) call c_free(c_loc(array(1)))
    end subroutine drop
  end subroutine drop_l1_1

  subroutine where_l1_1(array, near, far, absent)
    logical(c_bool), intent(in), target :: array(:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(1)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1)), c_loc(array(n(1))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l1_1

  subroutine get_l1_2s(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:)
    integer(int32), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(2)
    logical(c_bool), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_2s

  subroutine get_l1_2l(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:)
    integer(int64), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(2)
    logical(c_bool), pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_2l

  subroutine drop_l1_2(array, stat)
    logical(c_bool), pointer, intent(inout) :: array(:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical(c_bool), intent(in), target :: array(:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1)))
    end subroutine drop
  end subroutine drop_l1_2

  subroutine where_l1_2(array, near, far, absent)
    logical(c_bool), intent(in), target :: array(:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(2)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1)), c_loc(array(n(1), n(2))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l1_2

  subroutine get_l1_3s(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:,:)
    integer(int32), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(3)
    logical(c_bool), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_3s

  subroutine get_l1_3l(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:,:)
    integer(int64), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(3)
    logical(c_bool), pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_3l

  subroutine drop_l1_3(array, stat)
    logical(c_bool), pointer, intent(inout) :: array(:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical(c_bool), intent(in), target :: array(:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1)))
    end subroutine drop
  end subroutine drop_l1_3

  subroutine where_l1_3(array, near, far, absent)
    logical(c_bool), intent(in), target :: array(:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(3)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1)), c_loc(array(n(1), n(2), n(3))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l1_3

  subroutine get_l1_4s(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:,:,:)
    integer(int32), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(4)
    logical(c_bool), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_4s

  subroutine get_l1_4l(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:,:,:)
    integer(int64), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(4)
    logical(c_bool), pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_4l

  subroutine drop_l1_4(array, stat)
    logical(c_bool), pointer, intent(inout) :: array(:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical(c_bool), intent(in), target :: array(:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_l1_4

  subroutine where_l1_4(array, near, far, absent)
    logical(c_bool), intent(in), target :: array(:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(4)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l1_4

  subroutine get_l1_5s(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int32), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(5)
    logical(c_bool), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_5s

  subroutine get_l1_5l(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:,:,:,:)
    integer(int64), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(5)
    logical(c_bool), pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_5l

  subroutine drop_l1_5(array, stat)
    logical(c_bool), pointer, intent(inout) :: array(:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical(c_bool), intent(in), target :: array(:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_l1_5

  subroutine where_l1_5(array, near, far, absent)
    logical(c_bool), intent(in), target :: array(:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(5)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l1_5

  subroutine get_l1_6s(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(6)
    logical(c_bool), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_6s

  subroutine get_l1_6l(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(6)
    logical(c_bool), pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_6l

  subroutine drop_l1_6(array, stat)
    logical(c_bool), pointer, intent(inout) :: array(:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical(c_bool), intent(in), target :: array(:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_l1_6

  subroutine where_l1_6(array, near, far, absent)
    logical(c_bool), intent(in), target :: array(:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(6)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l1_6

  subroutine get_l1_7s(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(7)
    logical(c_bool), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_7s

  subroutine get_l1_7l(array, shape, tier, stat, lower)
    logical(c_bool), pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(7)
    logical(c_bool), pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l1_7l

  subroutine drop_l1_7(array, stat)
    logical(c_bool), pointer, intent(inout) :: array(:,:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical(c_bool), intent(in), target :: array(:,:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_l1_7

  subroutine where_l1_7(array, near, far, absent)
    logical(c_bool), intent(in), target :: array(:,:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(7)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6), n(7))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l1_7

  subroutine get_l4_1s(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(1)
    logical, pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_1s

  subroutine get_l4_ns(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:)
    integer(int32), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower
    logical, pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int32)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_ns

  subroutine get_l4_1l(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape(1)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(1)
    logical, pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_1l

  subroutine get_l4_nl(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:)
    integer(int64), intent(in) :: shape
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower
    logical, pointer :: fresh(:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get([int(shape, int64)], storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, [max(shape, 0_int64)])
      if (present(lower)) then
        array(lower:) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_nl

  subroutine drop_l4_1(array, stat)
    logical, pointer, intent(inout) :: array(:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical, intent(in), target :: array(:)
      if (size(array) > 0) call c_free(c_loc(array(1)))
    end subroutine drop
  end subroutine drop_l4_1

  subroutine where_l4_1(array, near, far, absent)
    logical, intent(in), target :: array(:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(1)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1)), c_loc(array(n(1))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l4_1

  subroutine get_l4_2s(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:)
    integer(int32), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(2)
    logical, pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_2s

  subroutine get_l4_2l(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:)
    integer(int64), intent(in) :: shape(2)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(2)
    logical, pointer :: fresh(:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_2l

  subroutine drop_l4_2(array, stat)
    logical, pointer, intent(inout) :: array(:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical, intent(in), target :: array(:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1)))
    end subroutine drop
  end subroutine drop_l4_2

  subroutine where_l4_2(array, near, far, absent)
    logical, intent(in), target :: array(:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(2)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1)), c_loc(array(n(1), n(2))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l4_2

  subroutine get_l4_3s(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:,:)
    integer(int32), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(3)
    logical, pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_3s

  subroutine get_l4_3l(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:,:)
    integer(int64), intent(in) :: shape(3)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(3)
    logical, pointer :: fresh(:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_3l

  subroutine drop_l4_3(array, stat)
    logical, pointer, intent(inout) :: array(:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical, intent(in), target :: array(:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1)))
    end subroutine drop
  end subroutine drop_l4_3

  subroutine where_l4_3(array, near, far, absent)
    logical, intent(in), target :: array(:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(3)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1)), c_loc(array(n(1), n(2), n(3))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l4_3

  subroutine get_l4_4s(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:,:,:)
    integer(int32), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(4)
    logical, pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_4s

  subroutine get_l4_4l(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:,:,:)
    integer(int64), intent(in) :: shape(4)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(4)
    logical, pointer :: fresh(:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_4l

  subroutine drop_l4_4(array, stat)
    logical, pointer, intent(inout) :: array(:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical, intent(in), target :: array(:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_l4_4

  subroutine where_l4_4(array, near, far, absent)
    logical, intent(in), target :: array(:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(4)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l4_4

  subroutine get_l4_5s(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:,:,:,:)
    integer(int32), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(5)
    logical, pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_5s

  subroutine get_l4_5l(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:,:,:,:)
    integer(int64), intent(in) :: shape(5)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(5)
    logical, pointer :: fresh(:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_5l

  subroutine drop_l4_5(array, stat)
    logical, pointer, intent(inout) :: array(:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical, intent(in), target :: array(:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_l4_5

  subroutine where_l4_5(array, near, far, absent)
    logical, intent(in), target :: array(:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(5)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l4_5

  subroutine get_l4_6s(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(6)
    logical, pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_6s

  subroutine get_l4_6l(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(6)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(6)
    logical, pointer :: fresh(:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_6l

  subroutine drop_l4_6(array, stat)
    logical, pointer, intent(inout) :: array(:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical, intent(in), target :: array(:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_l4_6

  subroutine where_l4_6(array, near, far, absent)
    logical, intent(in), target :: array(:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(6)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l4_6

  subroutine get_l4_7s(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int32), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int32), intent(in), optional :: lower(7)
    logical, pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int32))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_7s

  subroutine get_l4_7l(array, shape, tier, stat, lower)
    logical, pointer, intent(out) :: array(:,:,:,:,:,:,:)
    integer(int64), intent(in) :: shape(7)
    integer(c_int), intent(in), optional :: tier
    integer, intent(out), optional :: stat
    integer(int64), intent(in), optional :: lower(7)
    logical, pointer :: fresh(:,:,:,:,:,:,:)
    type(c_ptr) :: block
    integer :: why
    nullify (array)
    call get(int(shape, int64), storage_size(array, int64) / 8, tier, block, why)
    if (why == 0) then
      call c_f_pointer(block, fresh, max(shape, 0_int64))
      if (present(lower)) then
        array(lower(1):, lower(2):, lower(3):, lower(4):, lower(5):, lower(6):, lower(7):) => fresh
      else
        array => fresh
      end if
    end if
    call tell(why, stat)
  end subroutine get_l4_7l

  subroutine drop_l4_7(array, stat)
    logical, pointer, intent(inout) :: array(:,:,:,:,:,:,:)
    integer, intent(out), optional :: stat
    if (associated(array)) call drop(array)
    nullify (array)
    if (present(stat)) stat = 0
  contains
    subroutine drop(array)
      logical, intent(in), target :: array(:,:,:,:,:,:,:)
      if (size(array) > 0) call c_free(c_loc(array(1, 1, 1, 1, 1, 1, 1)))
    end subroutine drop
  end subroutine drop_l4_7

  subroutine where_l4_7(array, near, far, absent)
    logical, intent(in), target :: array(:,:,:,:,:,:,:)
    integer(int64), intent(out) :: near
    integer(int64), intent(out), optional :: far, absent
    integer(int64) :: n(7)
    n = shape(array, kind=int64)
    if (all(n > 0)) then
      call ask(c_loc(array(1, 1, 1, 1, 1, 1, 1)), c_loc(array(n(1), n(2), n(3), n(4), n(5), n(6), n(7))), &
        storage_size(array, int64) / 8, near, far, absent)
    else
      call ask(c_null_ptr, c_null_ptr, 0_int64, near, far, absent)
    end if
  end subroutine where_l4_7

end module nearfar
