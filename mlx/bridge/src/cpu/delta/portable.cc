#define INGOT_PORTABLE
#define INGOT_ISA portable
#include "cpu/delta/kernels.h"
#include "cpu/delta/wkv.h"

namespace ingot::cpu {

extern const DeltaKernels delta_portable;
const DeltaKernels delta_portable = {{portable::delta<float>, portable::delta<f16>, portable::delta<bf16>},
                                     {portable::scan<float>, portable::scan<f16>, portable::scan<bf16>},
                                     portable::channels,
                                     {portable::conv<float>, portable::conv<f16>, portable::conv<bf16>},
                                     {portable::wkv<float>, portable::wkv<f16>, portable::wkv<bf16>}};

}  // namespace ingot::cpu
