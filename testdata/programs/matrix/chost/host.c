/* A C program that loads Go as a shared library: host LIB.so. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*run)(void) = lib ? (void (*)(void))dlsym(lib, "goprofMain") : NULL;

	if (!run) {
		fprintf(stderr, "host: %s\n", argc > 1 ? dlerror() : "usage: host LIB.so");
		return 1;
	}
	run();
	return 0;
}
