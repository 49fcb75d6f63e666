#define INGOT_ISA neon
#include "cpu/rows/kernels.h"

namespace ingot::cpu {

extern const RowKernels rows_neon;
const RowKernels rows_neon = [] {
  using namespace neon;
  return RowKernels IG_ROW_KERNELS;
}();

}  // namespace ingot::cpu
