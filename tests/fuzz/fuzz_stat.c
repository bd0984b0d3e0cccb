/*
 * Any bytes as /proc/PID/stat and as /proc/PID/status: parsing must end and must not read
 * outside.
 */
#include "target/target_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct procstat st;
	struct err e = { "" };
	pid_t tgid;
	int ret;

	ret = procstat_parse((const char *)data, size, &st, &e);
	BUG_ON(ret && (ret != -EBADMSG || !e.msg[0]));
	ret = procstatus_tgid((const char *)data, size, &tgid, &e);
	BUG_ON(ret ? ret != -EBADMSG : tgid < 0);
	return 0;
}
