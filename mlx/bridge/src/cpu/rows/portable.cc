#define INGOT_PORTABLE
#define INGOT_ISA portable
#include "cpu/rows/kernels.h"

namespace ingot::cpu {

extern const RowKernels rows_portable;
const RowKernels rows_portable = [] {
  using namespace portable;
  return RowKernels IG_ROW_KERNELS;
}();

}  // namespace ingot::cpu
