#define INGOT_ISA neon
#include "cpu/delta/kernels.h"

namespace ingot::cpu {

extern const DeltaKernels delta_neon;
const DeltaKernels delta_neon = {{neon::delta<float>, neon::delta<f16>, neon::delta<bf16>},
                                 {neon::conv<float>, neon::conv<f16>, neon::conv<bf16>}};

}  // namespace ingot::cpu
