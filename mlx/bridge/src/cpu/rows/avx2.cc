#define INGOT_ISA avx2
#include "cpu/rows/kernels.h"

namespace ingot::cpu {

extern const RowKernels rows_avx2;
const RowKernels rows_avx2 = [] {
  using namespace avx2;
  return RowKernels IG_ROW_KERNELS;
}();

}  // namespace ingot::cpu
