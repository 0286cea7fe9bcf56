! The Fortran module: kinds, ranks, bounds, tiers, refusals, sections, empty arrays.
! flags: -cpp -std=f2008 -fcheck=all -I../../fortran -L../release -lnearfar -Wl,-rpath,$ORIGIN/../release
#include "nearfar.F90"

program api_pointers
  use nearfar
  use, intrinsic :: iso_c_binding, only: c_bool
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  implicit none
  call kinds()
  call ranks()
  call bounds()
  call refusals()
  call questions()
  write (*, '(a)') 'OK'
contains
  subroutine must(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    if (.not. condition) then
      write (*, '(2a)') 'FAILED: ', what
      stop 1
    end if
  end subroutine must

  subroutine kinds()
    real(real32), pointer :: r4(:)
    real(real64), pointer, contiguous :: r8(:)
    complex(real32), pointer :: c4(:)
    complex(real64), pointer :: c8(:)
    integer(int8), pointer :: i1(:)
    integer(int16), pointer :: i2(:)
    integer(int32), pointer :: i4(:)
    integer(int64), pointer :: i8(:)
    logical(c_bool), pointer :: l1(:)
    logical, pointer :: l4(:)
    integer, parameter :: n = 100000
    integer :: i
    call nf_allocate(r4, n); call nf_allocate(r8, n); call nf_allocate(c4, n); call nf_allocate(c8, n)
    call nf_allocate(i1, n, nf_far); call nf_allocate(i2, n, nf_far); call nf_allocate(i4, n, nf_far)
    call nf_allocate(i8, int(n, int64), nf_far); call nf_allocate(l1, [n]); call nf_allocate(l4, [int(n, int64)])
    do i = 1, n
      r4(i) = real(i); r8(i) = i; c4(i) = cmplx(i, -i); c8(i) = cmplx(-i, i, real64)
      i1(i) = int(mod(i, 100), int8); i2(i) = int(mod(i, 30000), int16); i4(i) = i; i8(i) = int(i, int64)*i
      l1(i) = mod(i, 3) == 0; l4(i) = mod(i, 2) == 0
    end do
    call must(r4(n) == real(n) .and. all(r8 == [(real(i, real64), i=1, n)]), 'real')
    call must(c4(7) == cmplx(7, -7) .and. sum(real(c8)) == -0.5_real64*n*(n + 1.0_real64), 'complex')
    call must(i1(199) == 99 .and. i2(n) == 10000 .and. sum(i8) == sum([(int(i, int64)*i, i=1, n)]), 'integer')
    call must(count(l1) == n/3 .and. count(l4) == n/2 .and. i4(n) == n, 'logical')
    call must(size(l1) == n .and. lbound(r8, 1) == 1 .and. is_contiguous(r8), 'shape')
    call nf_deallocate(r4); call nf_deallocate(r8); call nf_deallocate(c4); call nf_deallocate(c8)
    call nf_deallocate(i1); call nf_deallocate(i2); call nf_deallocate(i4); call nf_deallocate(i8)
    call nf_deallocate(l1); call nf_deallocate(l4)
    call must(.not. associated(r4) .and. .not. associated(l4), 'nullified')
    call nf_deallocate(r4)
  end subroutine kinds

  subroutine ranks()
    real(real64), pointer :: a2(:, :), a3(:, :, :), a4(:, :, :, :), a5(:, :, :, :, :), a6(:, :, :, :, :, :), a7(:, :, :, :, :, :, :)
    call nf_allocate(a2, [3, 5]); call nf_allocate(a3, [3, 5, 2], tier=nf_far); call nf_allocate(a4, [3, 5, 2, 4])
    call nf_allocate(a5, [3, 5, 2, 4, 1]); call nf_allocate(a6, [3, 5, 2, 4, 1, 2]); call nf_allocate(a7, [3, 5, 2, 4, 1, 2, 3])
    a2 = 2; a3 = 3; a4 = 4; a5 = 5; a6 = 6; a7 = 7
    a7(3, 5, 2, 4, 1, 2, 3) = 8
    call must(all(shape(a7) == [3, 5, 2, 4, 1, 2, 3]) .and. sum(a7) == 7*720 + 1, 'rank 7')
    call must(sum(a2) == 30 .and. sum(a3) == 90 .and. sum(a4) == 480 .and. sum(a5) == 600 .and. sum(a6) == 1440, 'ranks')
    call nf_deallocate(a2); call nf_deallocate(a3); call nf_deallocate(a4); call nf_deallocate(a5); call nf_deallocate(a6)
    call nf_deallocate(a7)
  end subroutine ranks

  subroutine bounds()
    integer, pointer :: a(:, :), b(:), empty(:, :), section(:, :)
    integer(int64) :: near, far, absent
    integer :: status
    call nf_allocate(a, [4, 1000], lower=[-1, 0])
    call must(all(lbound(a) == [-1, 0]) .and. all(ubound(a) == [2, 999]), 'lower bounds')
    a = 1
    a(-1, 0) = 5
    section => a(:, 999:0:-2)
    call must(size(section) == 2000 .and. sum(a) == 4004, 'content')
    call nf_where(a, near, far, absent)
    call must(near + far + absent <= 16000 .and. absent == 0, 'where')
    call nf_where(section, near, far, absent)
    call must(near + far <= 16000, 'where of a section')
    call nf_allocate(b, 10, lower=0)
    call must(lbound(b, 1) == 0 .and. ubound(b, 1) == 9, 'lower bound')
    call nf_allocate(empty, [0, 7], stat=status)
    call must(status == 0 .and. associated(empty) .and. size(empty) == 0, 'empty')
    call nf_where(empty, near)
    call must(near == 0, 'where of an empty array')
    call nf_deallocate(a, stat=status); call nf_deallocate(b); call nf_deallocate(empty)
    call must(status == 0, 'deallocate')
  end subroutine bounds

  subroutine refusals()
    real(real64), pointer :: a(:, :), b(:)
    integer :: status
    call nf_allocate(a, [huge(1_int64)/2, 4_int64], stat=status)
    call must(status /= 0 .and. .not. associated(a), 'overflow')
    call nf_allocate(b, 2_int64**58, stat=status)
    call must(status /= 0 .and. .not. associated(b), 'too much')
    call nf_allocate(b, 10, tier=7, stat=status)
    call must(status /= 0 .and. .not. associated(b), 'unknown tier')
  end subroutine refusals

  subroutine questions()
    call must(nf_total(nf_near) >= 0 .and. nf_left(nf_far) /= 0 .and. nf_total(99) == -1, 'capacity')
    call must(len(nf_describe()) > 10 .and. index(nf_describe(), 'near') > 0, 'describe')
    call must(nf_tiers() == 1 .or. nf_tiers() == 2, 'tiers')
  end subroutine questions
end program api_pointers
