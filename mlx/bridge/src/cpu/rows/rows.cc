#include "cpu/rows/rows.h"

#include "cpu/isa.h"
#include "cpu/delta/delta.h"

namespace ingot::cpu {

extern const RowKernels rows_portable, rows_avx2, rows_avx512, rows_neon;
extern const DeltaKernels delta_portable, delta_avx2, delta_avx512, delta_neon;

const RowKernels& row_kernels() {
  static constexpr Choice<RowKernels> choice = {
      .portable = &rows_portable,
#if defined(__x86_64__)
      .avx2 = &rows_avx2,
#endif
#if defined(IG_HAS_AVX512)
      .avx512 = &rows_avx512,
#endif
#if defined(__aarch64__)
      .neon = &rows_neon,
#endif
  };
  return choice.get();
}

const DeltaKernels& delta_kernels() {
  static constexpr Choice<DeltaKernels> choice = {
      .portable = &delta_portable,
#if defined(__x86_64__)
      .avx2 = &delta_avx2,
#endif
#if defined(IG_HAS_AVX512)
      .avx512 = &delta_avx512,
#endif
#if defined(__aarch64__)
      .neon = &delta_neon,
#endif
  };
  return choice.get();
}

}  // namespace ingot::cpu
