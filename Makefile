# The same tasks without make: sh run.sh study, sh run.sh test, ...
.PHONY: study test test-verl lab setup
study test test-verl lab setup:
	@sh run.sh $@
