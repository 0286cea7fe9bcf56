! The work arrays of a real-space projection, as in the paper on VASP and MCDRAM (CUG 2016, figure 13), where the compiler's FASTMEM
! directive worked for ALLOCATABLE arrays only and pointers needed a second set of arrays. Here the pointers themselves are placed:
!     INTEGER, POINTER :: NLI(:,:);  REAL(qn), POINTER, CONTIGUOUS :: RPROJ(:);  COMPLEX(q), POINTER :: CRREXP(:,:,:)
program work_arrays
  use nearfar
  use, intrinsic :: iso_fortran_env, only: real64, int64, error_unit
  implicit none
  type nonlr_struct
    integer, pointer :: nli(:, :)
    real(real64), pointer, contiguous :: rproj(:)
    complex(real64), pointer :: crrexp(:, :, :)
  end type nonlr_struct
  type(nonlr_struct) :: nonlr
  integer, parameter :: irmax = 4000, nions = 12, spins = 2, channels = 8
  integer :: ion, point, spin
  integer(int64) :: near
  complex(real64) :: total

  call nf_allocate(nonlr%nli, [irmax, nions])
  call nf_allocate(nonlr%rproj, irmax*channels)
  call nf_allocate(nonlr%crrexp, [irmax, nions, spins], lower=[1, 1, 0])

  do ion = 1, nions
    do point = 1, irmax
      nonlr%nli(point, ion) = 1 + mod(point*7 + ion*13, irmax*channels)
      do spin = 0, spins - 1
        nonlr%crrexp(point, ion, spin) = cmplx(mod(point, 17), spin - mod(ion, 3), real64)
      end do
    end do
  end do
  do point = 1, size(nonlr%rproj)
    nonlr%rproj(point) = 1.0_real64 + mod(point, 5)
  end do

  total = 0
  do spin = 0, spins - 1
    do ion = 1, nions
      do point = 1, irmax
        total = total + nonlr%rproj(nonlr%nli(point, ion))*nonlr%crrexp(point, ion, spin)
      end do
    end do
  end do
  call nf_where(nonlr%crrexp, near)
  write (error_unit, '(a,a,i0,a,i0)') nf_describe(), '; bytes of CRREXP in near memory: ', near, ', left there: ', nf_left(nf_near)
  write (*, '(a,i0,a,i0)') 'work arrays: ', nint(real(total), int64), ' ', nint(aimag(total), int64)

  call nf_deallocate(nonlr%nli)
  call nf_deallocate(nonlr%rproj)
  call nf_deallocate(nonlr%crrexp)
end program work_arrays
