#define INGOT_ISA avx512
#include "cpu/rows/kernels.h"

namespace ingot::cpu {

extern const RowKernels rows_avx512;
const RowKernels rows_avx512 = [] {
  using namespace avx512;
  return RowKernels IG_ROW_KERNELS;
}();

}  // namespace ingot::cpu
