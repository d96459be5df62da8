package gpu

import (
	"testing"
	"unsafe"
)

// TestStructsLieAsInTheHeader holds them to what a C compiler says of vulkan_core.h
// for 64 bits.
func TestStructsLieAsInTheHeader(t *testing.T) {
	for name, c := range map[string][2]uintptr{
		"VkApplicationInfo":                         {unsafe.Sizeof(applicationInfo{}), 48},
		"VkInstanceCreateInfo":                      {unsafe.Sizeof(instanceCreateInfo{}), 64},
		"VkPhysicalDeviceLimits":                    {unsafe.Sizeof(physicalDeviceLimits{}), 504},
		"VkPhysicalDeviceProperties":                {unsafe.Sizeof(physicalDeviceProperties{}), 824},
		"VkPhysicalDeviceProperties2":               {unsafe.Sizeof(physicalDeviceProperties2{}), 840},
		"VkPhysicalDeviceDriverProperties":          {unsafe.Sizeof(driverProperties{}), 536},
		"VkPhysicalDeviceMaintenance3Properties":    {unsafe.Sizeof(maintenance3Properties{}), 32},
		"VkPhysicalDeviceMemoryProperties2":         {unsafe.Sizeof(memoryProperties2{}), 536},
		"VkPhysicalDeviceMemoryBudgetPropertiesEXT": {unsafe.Sizeof(memoryBudgetProperties{}), 272},
		"VkQueueFamilyProperties":                   {unsafe.Sizeof(queueFamilyProperties{}), 24},
		"VkExtensionProperties":                     {unsafe.Sizeof(extensionProperties{}), 260},
		"VkDeviceQueueCreateInfo":                   {unsafe.Sizeof(deviceQueueCreateInfo{}), 40},
		"VkDeviceCreateInfo":                        {unsafe.Sizeof(deviceCreateInfo{}), 72},
		"VkMemoryAllocateInfo":                      {unsafe.Sizeof(memoryAllocateInfo{}), 32},
		"VkBufferCreateInfo":                        {unsafe.Sizeof(bufferCreateInfo{}), 56},
		"VkMemoryRequirements":                      {unsafe.Sizeof(memoryRequirements{}), 24},
		"VkShaderModuleCreateInfo":                  {unsafe.Sizeof(shaderModuleCreateInfo{}), 40},
		"VkDescriptorSetLayoutBinding":              {unsafe.Sizeof(descriptorSetLayoutBinding{}), 24},
		"VkDescriptorSetLayoutCreateInfo":           {unsafe.Sizeof(descriptorSetLayoutCreateInfo{}), 32},
		"VkPipelineLayoutCreateInfo":                {unsafe.Sizeof(pipelineLayoutCreateInfo{}), 48},
		"VkPipelineShaderStageCreateInfo":           {unsafe.Sizeof(pipelineShaderStageCreateInfo{}), 48},
		"VkComputePipelineCreateInfo":               {unsafe.Sizeof(computePipelineCreateInfo{}), 96},
		"VkDescriptorPoolCreateInfo":                {unsafe.Sizeof(descriptorPoolCreateInfo{}), 40},
		"VkDescriptorSetAllocateInfo":               {unsafe.Sizeof(descriptorSetAllocateInfo{}), 40},
		"VkWriteDescriptorSet":                      {unsafe.Sizeof(writeDescriptorSet{}), 64},
		"VkDescriptorBufferInfo":                    {unsafe.Sizeof(descriptorBufferInfo{}), 24},
		"VkCommandPoolCreateInfo":                   {unsafe.Sizeof(commandPoolCreateInfo{}), 24},
		"VkCommandBufferAllocateInfo":               {unsafe.Sizeof(commandBufferAllocateInfo{}), 32},
		"VkCommandBufferBeginInfo":                  {unsafe.Sizeof(commandBufferBeginInfo{}), 32},
		"VkSubmitInfo":                              {unsafe.Sizeof(submitInfo{}), 72},
		"VkFenceCreateInfo":                         {unsafe.Sizeof(fenceCreateInfo{}), 24},
		"VkMemoryBarrier":                           {unsafe.Sizeof(memoryBarrier{}), 24},
		"VkBufferCopy":                              {unsafe.Sizeof(bufferCopy{}), 24},
		"limits":                                    {unsafe.Offsetof(physicalDeviceProperties{}.limits), 296},
		"maxStorageBufferRange":                     {unsafe.Offsetof(physicalDeviceLimits{}.maxStorageBufferRange), 28},
		"maxComputeWorkGroupInvocations":            {unsafe.Offsetof(physicalDeviceLimits{}.maxGroupInvocations), 232},
		"minStorageBufferOffsetAlignment":           {unsafe.Offsetof(physicalDeviceLimits{}.minStorageBufferOffset), 328},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is at or of %d bytes, in C %d", name, c[0], c[1])
		}
	}
}
