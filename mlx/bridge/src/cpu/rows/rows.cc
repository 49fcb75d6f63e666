#include "cpu/rows/rows.h"

#include "cpu/isa.h"
#include "cpu/delta/delta.h"

namespace ingot::cpu {

extern const RowKernels rows_portable, rows_avx2, rows_avx512, rows_neon;
extern const DeltaKernels delta_portable, delta_avx2, delta_avx512, delta_neon;

const RowKernels& row_kernels() {
#if defined(IG_HAS_AVX512)
  constexpr Choice<RowKernels> choice{.portable = &rows_portable, .avx2 = &rows_avx2, .avx512 = &rows_avx512};
#elif defined(__x86_64__)
  constexpr Choice<RowKernels> choice{.portable = &rows_portable, .avx2 = &rows_avx2};
#elif defined(__aarch64__)
  constexpr Choice<RowKernels> choice{.portable = &rows_portable, .neon = &rows_neon};
#else
  constexpr Choice<RowKernels> choice{.portable = &rows_portable};
#endif
  return choice.get();
}

const DeltaKernels& delta_kernels() {
#if defined(IG_HAS_AVX512)
  constexpr Choice<DeltaKernels> choice{.portable = &delta_portable, .avx2 = &delta_avx2, .avx512 = &delta_avx512};
#elif defined(__x86_64__)
  constexpr Choice<DeltaKernels> choice{.portable = &delta_portable, .avx2 = &delta_avx2};
#elif defined(__aarch64__)
  constexpr Choice<DeltaKernels> choice{.portable = &delta_portable, .neon = &delta_neon};
#else
  constexpr Choice<DeltaKernels> choice{.portable = &delta_portable};
#endif
  return choice.get();
}

}  // namespace ingot::cpu
